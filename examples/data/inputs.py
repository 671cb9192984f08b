"""Define the records that the inputs of all examples consist of."""

from __future__ import annotations

from typing import Any, NamedTuple

START_MS = 1_767_225_600_000
"""2026-01-01, midnight UTC: where the generated records begin."""


class Input(NamedTuple):
    """Represents a record of an example's input; the example's own serdes write it."""

    topic: str
    key: Any
    value: Any
    timestamp_ms: int
