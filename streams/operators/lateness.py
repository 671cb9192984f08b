"""Drop, count and report records that come after their window has closed.

It counts as dropped and as late, once for each window that it misses. `on_late` is called with
each: what it does is outside of the transaction, and what it raises is handled as an error of the
step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from streams.graph.nodes import Binding

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRecord(Generic[K, V]):
    """Represents a record that was dropped because it came too late, as `on_late` is given it.

    Times are in ms. `window_start_ms` and `window_end_ms` are of the window that it missed; None in
    joins and suppress, which name no window. `stream_time_ms` is how far the step's time had come,
    this record included. `topic`, `partition` and `offset` say where it was read; None and -1 if it
    was made by a punctuation.
    """

    step: str
    key: K
    value: V
    timestamp_ms: int
    topic: str | None
    partition: int
    offset: int
    stream_time_ms: int
    window_start_ms: int | None = None
    window_end_ms: int | None = None


OnLate = Callable[[LateRecord[Any, Any]], object]
HandleLateRecord = Callable[[Any, Any, int, int, int | None, int | None], None]
"""Takes key, value, timestamp, stream time, start and end of the window; times in ms."""


def create_late_handler(binding: Binding, on_late: OnLate | None) -> HandleLateRecord:
    """Return a function by which a step counts a late record and passes it to `on_late`."""
    context, failed, step = binding.context, binding.skip_record_or_raise, binding.step
    watch = context.observer

    def handle_late_record(
        key: Any,
        value: Any,
        timestamp_ms: int,
        stream_time_ms: int,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> None:
        context.dropped_count += 1
        context.late_count += 1
        if on_late is None and watch is None:
            return
        message = context.message
        record = LateRecord(
            step=step,
            key=key,
            value=value,
            timestamp_ms=timestamp_ms,
            topic=None if message is None else message.topic(),
            partition=-1 if message is None else message.partition(),
            offset=-1 if message is None else message.offset(),
            stream_time_ms=stream_time_ms,
            window_start_ms=start_ms,
            window_end_ms=end_ms,
        )
        if watch is not None:
            watch.observe_late_record(record)
        if on_late is None:
            return
        try:
            on_late(record)
        except Exception as error:
            failed(error, key, value)

    return handle_late_record
