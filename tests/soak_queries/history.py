"""Know what was written and committed when, and judge answers by it.

An answer names how far the store had taken in each input partition. So its counts follow from the
records below these offsets: exactly those of an active task, those or later ones of a standby,
whose position is a lower bound. Committed offsets that were seen before the answer's age began have
to be in it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.soak_queries.application import WINDOW_MS

Counted = tuple[str, int | None]
"""A key, and the start of a window or None."""


class Answer(NamedTuple):
    """Holds what was asked, and what was answered: counts by key and window, and the headers."""

    kind: str
    key: str
    """The key, or the first key of a range."""
    asked_at_s: float
    counts: Mapping[Counted, int]
    position: Mapping[int, int]
    age_s: float
    is_exact: bool
    """Whether active tasks alone have answered."""
    has_more: bool
    last_key: str
    """The last key of a range of windows."""
    from_ms: int = 0
    """The time from which windows start that were asked for."""
    at_least: Mapping[int, int] = {}
    """The offsets that had to be reached."""


class History:
    """Collects records and committed offsets, by partition."""

    def __init__(self) -> None:
        self.partition_of: dict[str, int] = {}
        self._offsets: defaultdict[Counted, list[int]] = defaultdict(list)
        self._windows: defaultdict[str, list[Counted]] = defaultdict(list)
        self._committed: list[tuple[float, dict[int, int]]] = []
        self._lock = threading.Lock()

    def add_record(self, key: str, timestamp_ms: int, partition: int, offset: int) -> None:
        """Note a record that was delivered."""
        with self._lock:
            self.partition_of[key] = partition
            self._offsets[key, None].append(offset)
            self._offsets[key, timestamp_ms // WINDOW_MS * WINDOW_MS].append(offset)

    def add_committed(self, at_s: float, offsets: dict[int, int]) -> None:
        """Note that these offsets were committed at a time, at the latest."""
        self._committed.append((at_s, offsets))

    def sort(self) -> None:
        """Put all in order, when the last record has been delivered."""
        for offsets in self._offsets.values():
            offsets.sort()
        for counted in self._offsets:
            if counted[1] is not None:
                self._windows[counted[0]].append(counted)

    def judge(self, answer: Answer) -> str:
        """Return what is wrong with an answer; empty if nothing is."""
        if stale := self._find_missed_commit(answer):
            return stale
        for partition, offset in answer.at_least.items():
            if answer.position.get(partition, offset) < offset:
                return f"partition {partition} is not at {offset}: {answer.position}"
        for counted, value in answer.counts.items():
            if wrong := self._judge_count(answer, counted, value):
                return wrong
        for counted in self._list_wanted(answer):
            if counted not in answer.counts and self._count(answer, counted):
                return f"{counted} is missing: {self._count(answer, counted)} at {answer.position}"
        return ""

    def _find_missed_commit(self, answer: Answer) -> str:
        """Return which commit before the age began the answer does not have."""
        until_s = answer.asked_at_s - answer.age_s
        number = bisect_left(self._committed, until_s, key=lambda each: each[0])
        if number == 0:
            return ""
        at_s, committed = self._committed[number - 1]
        for partition in answer.position if answer.is_exact else ():
            if answer.position[partition] < committed.get(partition, 0):
                return (
                    f"partition {partition} is at {answer.position[partition]}, and "
                    f"{committed[partition]} was committed {until_s - at_s:.3f} s before its age"
                )
        if answer.is_exact:
            return ""
        for counted, value in answer.counts.items():
            end = committed.get(self.partition_of.get(counted[0], -1), 0)
            if value < bisect_left(self._offsets.get(counted, ()), end):
                return f"{counted} is {value}, and offset {end} was committed before its age"
        return ""

    def _judge_count(self, answer: Answer, counted: Counted, value: int) -> str:
        """Return whether a count was never true at the answer's position."""
        if counted not in self._offsets and value:
            return f"{counted} is {value}, and no such record was written"
        least = self._count(answer, counted)
        most = least if answer.is_exact else len(self._offsets.get(counted, ()))
        if least <= value <= most:
            return ""
        return f"{counted} is {value}, and from {least} to {most} at {answer.position}"

    def _count(self, answer: Answer, counted: Counted) -> int:
        """Return how many records of a key, or in a window, are below the answer's position."""
        end = answer.position.get(self.partition_of.get(counted[0], -1), 0)
        return bisect_left(self._offsets.get(counted, []), end)

    def _list_wanted(self, answer: Answer) -> Iterable[Counted]:
        """Return what has to be in an answer if it was there."""
        first = answer.key
        match answer.kind:
            case "window":
                return self._windows[first]
            case "windows":
                return [
                    counted
                    for key, windows in self._windows.items()
                    if first <= key <= answer.last_key
                    for counted in windows
                    if (counted[1] or 0) >= answer.from_ms
                ]
            case "range":
                last = max((key for key, _ in answer.counts), default="")
                return [
                    (key, None)
                    for key in self.partition_of
                    if first <= key and (key <= last or not answer.has_more)
                ]
            case _:
                return [(first, None)]
