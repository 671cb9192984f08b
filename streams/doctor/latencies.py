"""Time requests that change nothing, so that a broker that stalls again and again is seen.

A single late answer is no fault, and the shortest of several hides a broker that answers all that
has waited at once, between two stalls. So what counts is the second longest of several answers, to
requests with pauses between them. A request whose second longest answer is late already is not sent
again: it would only let a machine under load, and who looks at it, wait for longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

ROUNDS = 5
_PAUSE_S = 0.1
LATE_S = 1.0
"""The time from which an answer is late, of brokers and coordinators alike."""


def choose_second_longest_s(times_s: Sequence[float]) -> float:
    """Return the second longest of several times, or the only one."""
    return sorted(times_s)[-2] if len(times_s) > 1 else times_s[0]


def time_requests(*requests: Callable[[], object]) -> list[float]:
    """Send each request several times in turns, and return the second longest time of each in s.

    One that has been answered late twice is not sent again.
    """
    times_s: list[list[float]] = [[] for _ in requests]
    for number in range(ROUNDS):
        if number:
            time.sleep(_PAUSE_S)
        for each, found in zip(requests, times_s, strict=True):
            if len(found) > 1 and choose_second_longest_s(found) > LATE_S:
                continue
            began_s = time.monotonic()
            each()
            found.append(time.monotonic() - began_s)
    return [choose_second_longest_s(each) for each in times_s]
