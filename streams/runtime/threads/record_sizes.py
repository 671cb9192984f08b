"""Measure the sizes and the lateness of a slice's records by a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.graph.step_measurements import measure_headers_bytes

SAMPLE_RECORDS = 16
"""The records of a run that are looked at: all of a run of no more."""


def sample_records(messages: Sequence[Any]) -> Sequence[Any]:
    """Return records that are evenly spread over a run, the first one among them."""
    count = len(messages)
    return messages if count <= SAMPLE_RECORDS else messages[:: -(-count // SAMPLE_RECORDS)]


def estimate_bytes(sample: Sequence[Any], count: int) -> int:
    """Return the bytes of keys, values and headers of `count` records, of which some are given."""
    total = 0
    for message in sample:
        total += len(message.value() or b"") + len(message.key() or b"")
        if headers := message.headers():
            total += measure_headers_bytes(headers)
    return total if len(sample) == count else round(total * count / len(sample))
