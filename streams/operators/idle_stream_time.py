"""Advance a step's stream time while no records come, if `idle_close` is set.

Windows close by stream time, which stands still without records: the last results of a quiet night
wait for the morning. With `idle_close` a step that has had no record for that long advances its
time by as much as went by since its last record, by the monotonic clock: a wall clock that is set
leaves windows open as they are. It looks four times in that interval, so it may be a quarter late.
The price: whether a record is late depends on when records
arrived, and processing the same records again may give other results. Kafka Streams has no such
thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.graph.internal_context import StepStreamTime
from streams.graph.nodes import Binding, ForwardRecord

_LOOKS = 4


def wrap_with_idle_time_advance(
    binding: Binding,
    idle_ms: int,
    step_time: StepStreamTime,
    on_time_advanced: Callable[[int], None],
    process_record: ForwardRecord,
) -> ForwardRecord:
    """Wrap `process_record`, and schedule `on_time_advanced` to be called while no record comes.

    After `idle_ms` it is called again and again, with the stream time that it is then, until there
    is a record.
    """
    had_records = True
    """Whether there may have been records since the last check."""
    idle_since_s, idle_stream_time_ms = 0.0, 0
    """The monotonic clock and the step's stream time when records stopped coming."""
    monotonic_s = binding.context.monotonic_s

    def check_idle(_now_ms: int) -> None:
        nonlocal had_records, idle_since_s, idle_stream_time_ms
        if had_records:
            had_records, idle_since_s, idle_stream_time_ms = False, monotonic_s(), step_time.ms
            return
        passed_ms = round((monotonic_s() - idle_since_s) * 1_000)
        if idle_stream_time_ms >= 0 and passed_ms >= idle_ms:
            on_time_advanced(idle_stream_time_ms + passed_ms)

    def note_and_process(key: Any, value: Any, timestamp_ms: int) -> None:
        nonlocal had_records
        had_records = True
        process_record(key, value, timestamp_ms)

    binding.context.schedule_punctuation(max(idle_ms // _LOOKS, 1), check_idle, "wall")
    return note_and_process
