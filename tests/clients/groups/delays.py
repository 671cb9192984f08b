"""Measure how long processes had to wait for a processor, as the kernel counts it of each thread.

A client whose heartbeats come too late is fenced, rightly. That it was late because the machine was
busy with other things can be told from this, and from nothing that it says itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from tests.processes import read_waits_ns

SAMPLE_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Delay:
    """Holds how long one thread has waited in the time up to `at_ns` since the `Delay` before."""

    at_ns: int
    waited_ns: int


def waited_ns(delays: Iterable[Delay], begin_ns: int, end_ns: int) -> int:
    """Return how long the threads that waited longest have waited within these times."""
    margin_ns = int(SAMPLE_EVERY_S * 1e9)  # what is in a sample may lie before its time
    return sum(each.waited_ns for each in delays if begin_ns <= each.at_ns <= end_ns + margin_ns)


Watched = Callable[[], Sequence[tuple[int, list[Delay]]]]
"""Returns the processes that are to be watched now, each with the list that its delays go to."""


@contextmanager
def watching(watched: Watched) -> Iterator[None]:
    """Sample these processes' delays on a thread of its own while the context lasts."""
    ended = Event()
    before: dict[int, dict[str, int]] = {}

    def run() -> None:
        while not ended.wait(SAMPLE_EVERY_S):
            for pid, delays in watched():
                now = read_waits_ns(pid)
                known = before.get(pid, {})
                longest_ns = max((now[each] - known.get(each, 0) for each in now), default=0)
                delays.append(Delay(time.monotonic_ns(), longest_ns))
                before[pid] = now

    thread = Thread(target=run, name="delays")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
