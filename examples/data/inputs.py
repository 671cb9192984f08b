"""Define the type of the records that the generators of all examples yield."""

from __future__ import annotations

from typing import Any, NamedTuple

START_MS = 1_767_225_600_000
"""2026-01-01, midnight UTC: where the generated records begin."""


class Input(NamedTuple):
    """Represents an input record of an example, before the example's serdes serialize it."""

    topic: str
    key: Any
    value: Any
    timestamp_ms: int
