"""Suppress a table's updates: keep them in a buffer, and forward only the last of a key.

An update is forwarded when the table's own time, the largest timestamp of an update so far, has
passed the time at which it was to leave, or earlier if the buffer is full. An update of a key that
waits replaces the one before, and leaves when that one would have. The old value that goes with it
is the last that was forwarded: Kafka Streams gives that of the last update, which steps downstream
have not seen (docs/decisions/0023).

Rules: KTableSuppressProcessorSupplier, TimeDefinitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.buffer import BufferStore
from state.entry import ValueAndTimestamp
from streams.errors import StreamsError
from streams.operators.idle import when_idle
from streams.operators.recalled import Recalled, origin_of
from streams.topology.nodes import Binding, Operator, StoreSpec, Update
from streams.topology.views import Found, Get, GetAsOf, View

_NO_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Defines how long updates wait, and how many may; times in ms (Kafka Streams' Suppressed).

    Sizes are counted as by `state.buffered_change.change_size_bytes`.
    """

    wait_ms: int
    until_window_ends: bool
    """Whether they wait from the end of their window on, else from their timestamp. If so a
    deletion is dropped: no step has seen the window."""
    max_records: int | None
    max_bytes: int | None
    emits_early: bool
    """Whether a full buffer emits the first update; else it ends the application."""
    idle_close_ms: int | None = None
    """After that long without an update time advances by the wall clock; None: never."""


class SuppressedView:
    """Presents a suppressed table to later steps: a buffered key has the value emitted last.

    That value has no timestamp (KTableSuppressProcessorSupplier's value getter).
    """

    def __init__(self, parent: View, buffer: StoreSpec) -> None:
        self.spec: StoreSpec | None = None
        self.sends_old = True
        self._parent = parent
        self._buffer = buffer

    def send_old(self, *, force: bool = True) -> bool:
        return True

    def read_from(self) -> list[str]:
        return [self._buffer.name, *self._parent.read_from()]

    def get(self, at: Binding) -> Get:
        waiting = at.context.store(self._buffer.name).waiting
        of_parent = self._parent.get(at)
        encode_key, decode = self._buffer.key.serialize, self._buffer.value.deserialize

        def get_emitted(key: Any) -> Found:
            change = waiting(encode_key(key))
            if change is None:
                return of_parent(key)
            prior = change.prior
            return None if prior is None else ValueAndTimestamp(decode(prior), _NO_TIMESTAMP_MS)

        return get_emitted

    @property
    def is_versioned(self) -> bool:
        return False

    @property
    def expires_in(self) -> str | None:
        return self._parent.expires_in

    def get_as_of(self, at: Binding) -> GetAsOf:
        raise NotImplementedError("a suppressed table has no history")


def suppress(spec: StoreSpec, waiting: Waiting) -> Operator:
    """Return the operator that buffers a table's updates and forwards the last of each key."""

    def bind_operator(binding: Binding) -> Update:
        context, failed = binding.context, binding.failed
        buffer: BufferStore = context.store(spec.name)
        encode_key, encode_value = spec.key.serialize, spec.value.serialize
        wait_ms, until_window_ends = waiting.wait_ms, waiting.until_window_ends
        emit_first = _letting_go(binding, spec, waiting)
        enforce_limit = _limit(binding, buffer, waiting, emit_first)
        time, put = context.step_time(binding.step), buffer.put

        def emit_due() -> None:
            while buffer.first_ms <= time.ms - wait_ms:
                emit_first()

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            try:
                buffer_time_ms = key.end_ms if until_window_ends else timestamp_ms
                key_bytes = encode_key(key)
                old_bytes = None if old is None else encode_value(old)
                new_bytes = None if new is None else encode_value(new)
            except Exception as error:
                failed(error, key, new)
                return
            if timestamp_ms > time.ms:
                time.ms = timestamp_ms
            message = context.message
            origin = origin_of(message, timestamp_ms)
            first_ms = put(key_bytes, buffer_time_ms, old_bytes, new_bytes, origin)
            if first_ms <= time.ms - wait_ms:
                emit_due()
            if enforce_limit is not None:
                enforce_limit()
            context.message = message

        if waiting.idle_close_ms is None:
            return process_update
        return _while_open(binding, waiting.idle_close_ms, wait_ms, emit_due, process_update)

    return bind_operator


def _while_open(
    at: Binding, idle_ms: int, wait_ms: int, let_go: Callable[[], None], process: Update
) -> Update:
    """Return a function that processes updates of open windows and drops those of closed ones.

    Without updates the wall clock closes windows.
    """
    context, time = at.context, at.context.step_time(at.step)

    def advance_time(time_ms: int) -> None:
        time.ms = time_ms
        message = context.message
        let_go()
        context.message = message

    note_arrival = when_idle(at, idle_ms, time, advance_time, _nothing_more)

    def process_if_open(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        note_arrival(key, new, timestamp_ms)
        if (
            key.end_ms <= time.ms - wait_ms
        ):  # the steps upstream don't know a time that the wall clock has advanced
            context.dropped += 1
            context.late += 1
            return
        process(key, new, old, timestamp_ms, latest)

    return process_if_open


def _nothing_more(key: Any, value: Any, timestamp_ms: int) -> None:
    """Do nothing: the caller processes the update itself after it has noted its arrival."""


def _letting_go(at: Binding, spec: StoreSpec, waiting: Waiting) -> Callable[[], None]:
    """Return a function that forwards the first buffered update and removes it."""
    context, downstream = at.context, at.downstream
    buffer: BufferStore = context.store(spec.name)
    decode_key, decode_value = spec.key.deserialize, spec.value.deserialize
    drops_deletions = waiting.until_window_ends

    def emit_first() -> None:
        key, (prior, _, new, origin) = buffer.first()
        if new is not None or not drops_deletions:
            context.message = Recalled(origin)
            downstream(
                decode_key(key),
                None if new is None else decode_value(new),
                None if prior is None else decode_value(prior),
                origin.timestamp_ms,
                True,
            )
        buffer.remove_first()

    return emit_first


def _limit(
    at: Binding, buffer: BufferStore, waiting: Waiting, let_first_go: Callable[[], None]
) -> Callable[[], None] | None:
    """Return a function that makes room in a full buffer or raises; None without limits."""
    if waiting.max_records is None and waiting.max_bytes is None:
        return None
    records_max = float("inf") if waiting.max_records is None else waiting.max_records
    bytes_max = float("inf") if waiting.max_bytes is None else waiting.max_bytes

    def make_room() -> None:
        while buffer.records > records_max or buffer.size_bytes > bytes_max:
            let_first_go()

    def raise_if_full() -> None:
        if buffer.records > records_max or buffer.size_bytes > bytes_max:
            raise StreamsError(
                f"the buffer of step {at.step!r} is full: {buffer.records} records "
                f"(max_records={waiting.max_records}) and {buffer.size_bytes} bytes "
                f"(max_bytes={waiting.max_bytes}), and what waits may not go on early. Give it "
                "more room, or shorter windows or less grace; with until_time_limit "
                'when_full="emit_early" lets the oldest go'
            )

    return make_room if waiting.emits_early else raise_if_full
