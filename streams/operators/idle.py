"""Idle: where no records come, a step's stream time goes on by the wall clock, if it was asked to.

Windows close by stream time, which stands still without records: the last results of a quiet night
wait for the morning. With `idle_close` a step that has had no record for so long takes it that time
goes on as the clock does: by as much as went by since it had its last one. It looks four times in
that interval, so it may be a quarter late. The price: what is late depends on when records arrived,
and processing the same records again may give other results. Kafka Streams has no such thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, StepTime

_LOOKS = 4


def when_idle(
    at: Binding, idle_ms: int, time: StepTime, pass_time: Callable[[int], None], process: Emit
) -> Emit:
    """`process`; after `idle_ms` without a record `pass_time` is called with the stream time that
    it is then, again and again until there is one."""
    active = True
    """There may have been records since somebody looked."""
    since_ms = stood_ms = 0
    """The wall clock and the step's time when records stopped coming."""

    def look(now_ms: int) -> None:
        nonlocal active, since_ms, stood_ms
        if active:
            active, since_ms, stood_ms = False, now_ms, time.ms
        elif stood_ms >= 0 and now_ms - since_ms >= idle_ms:
            pass_time(stood_ms + now_ms - since_ms)

    def note_and_process(key: Any, value: Any, timestamp_ms: int) -> None:
        nonlocal active
        active = True
        process(key, value, timestamp_ms)

    at.context.schedule(max(idle_ms // _LOOKS, 1), look, "wall")
    return note_and_process
