"""Represent a key in a window of time, which is the key of windowed and session aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from state.guessed_names import explain_guessed_names

K = TypeVar("K")


@explain_guessed_names({"window": "its times are start_ms and end_ms"})
@dataclass(frozen=True, slots=True)
class Windowed(Generic[K]):
    """Represents `key` in the window from `start_ms` to `end_ms` (Kafka Streams' Windowed).

    The end of a time window is not part of it; the end of a session is, being the timestamp of its
    last record. Its text is that of Kafka Streams.
    """

    key: K
    start_ms: int
    end_ms: int

    def __str__(self) -> str:
        return f"[{self.key}@{self.start_ms}/{self.end_ms}]"
