"""A key in a window of time: what windowed and session aggregates are keyed by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Windowed(Generic[K]):
    """`key` from `start_ms` to `end_ms` (Kafka Streams' Windowed, and its text).

    The end of a time window is not part of it; the end of a session is, being the timestamp of its
    last record.
    """

    key: K
    start_ms: int
    end_ms: int

    def __str__(self) -> str:
        return f"[{self.key}@{self.start_ms}/{self.end_ms}]"
