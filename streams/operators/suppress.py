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
from state.errors import StoreSerdeError
from streams.errors import StreamsError
from streams.graph.nodes import Binding, ForwardUpdate, Operator, StoreSpec
from streams.graph.views import OptionalRow, RowGetter, RowGetterAsOf, TableView
from streams.operators.idle_stream_time import wrap_with_idle_time_advance
from streams.operators.record_origin import OriginMessage, capture_origin

_NO_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressOptions:
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

    def __init__(self, parent: TableView, buffer: StoreSpec) -> None:
        self.spec: StoreSpec | None = None
        self.sends_old_values = True
        self._parent = parent
        self._buffer = buffer

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Return True: the updates of a suppressed table carry the old value in any case."""
        return True

    def require_readable_stores(self) -> list[str]:
        """Return the buffer and the stores that the parent's look-ups need."""
        return [self._buffer.name, *self._parent.require_readable_stores()]

    def create_row_getter(self, binding: Binding) -> RowGetter:
        """Return a getter of the value emitted last; for a buffered key it is the prior one."""
        waiting = binding.context.get_store(self._buffer.name).find_change
        of_parent = self._parent.create_row_getter(binding)
        encode_key, decode = self._buffer.key.serialize, self._buffer.value.deserialize

        def get_emitted(key: Any) -> OptionalRow:
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
    def ttl_store(self) -> str | None:
        return self._parent.ttl_store

    def create_row_getter_as_of(self, binding: Binding) -> RowGetterAsOf:
        """Raise NotImplementedError: a suppressed table has no history."""
        raise NotImplementedError("a suppressed table has no history")


def suppress_updates(buffer_spec: StoreSpec, options: SuppressOptions) -> Operator:
    """Return the operator that buffers a table's updates and forwards the last of each key."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        context, failed = binding.context, binding.skip_record_or_raise
        buffer: BufferStore = context.get_store(buffer_spec.name)
        encode_key, encode_value = buffer_spec.key.serialize, buffer_spec.value.serialize
        wait_ms, until_window_ends = options.wait_ms, options.until_window_ends
        emit_first = _create_emitter(binding, buffer_spec, options)
        enforce_limit = _create_limit_enforcer(binding, buffer, options, emit_first)
        time, put = context.get_or_create_stream_time(binding.step), buffer.put

        def emit_due() -> None:
            while buffer.min_time_ms <= time.ms - wait_ms:
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
            message = context.message
            origin = capture_origin(message, timestamp_ms)
            try:
                first_ms = put(key_bytes, buffer_time_ms, old_bytes, new_bytes, origin)
            except StoreSerdeError as error:  # larger than the changelog takes
                failed(error, key, new)
                return
            if timestamp_ms > time.ms:
                time.ms = timestamp_ms
            if first_ms <= time.ms - wait_ms:
                emit_due()
                context.message = message
            if enforce_limit is not None:
                enforce_limit()
                context.message = message

        if options.idle_close_ms is None:
            return process_update
        return _create_open_window_processor(
            binding, options.idle_close_ms, wait_ms, emit_due, process_update
        )

    return bind_operator


def _create_open_window_processor(
    binding: Binding,
    idle_ms: int,
    wait_ms: int,
    emit_due: Callable[[], None],
    process_update: ForwardUpdate,
) -> ForwardUpdate:
    """Return a function that processes updates of open windows and drops those of closed ones.

    Without updates the wall clock closes windows.
    """
    context, time = binding.context, binding.context.get_or_create_stream_time(binding.step)

    def advance_time(time_ms: int) -> None:
        time.ms = time_ms
        message = context.message
        emit_due()
        context.message = message

    note_arrival = wrap_with_idle_time_advance(binding, idle_ms, time, advance_time, _do_nothing)

    def process_if_open(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        note_arrival(key, new, timestamp_ms)
        if (
            key.end_ms <= time.ms - wait_ms
        ):  # the steps upstream don't know a time that the wall clock has advanced
            context.dropped_count += 1
            context.late_count += 1
            return
        process_update(key, new, old, timestamp_ms, latest)

    return process_if_open


def _do_nothing(key: Any, value: Any, timestamp_ms: int) -> None:
    """Do nothing with an arrived record: only its arrival matters, which the caller notes."""


def _create_emitter(
    binding: Binding, buffer_spec: StoreSpec, options: SuppressOptions
) -> Callable[[], None]:
    """Return a function that forwards the earliest buffered update and removes it."""
    context, downstream = binding.context, binding.downstream
    buffer: BufferStore = context.get_store(buffer_spec.name)
    decode_key, decode_value = buffer_spec.key.deserialize, buffer_spec.value.deserialize
    drops_deletions = options.until_window_ends
    measured = context.get_or_create_step_measurements(binding.step)
    measured.enable_suppression_timing()

    def emit_first() -> None:
        key, (prior, _, new, origin) = buffer.peek_first()
        if new is not None or not drops_deletions:
            context.message = OriginMessage(origin)
            downstream(
                decode_key(key),
                None if new is None else decode_value(new),
                None if prior is None else decode_value(prior),
                origin.timestamp_ms,
                True,
            )
            measured.emitted_count += 1
        buffer.evict_first()

    return emit_first


def _create_limit_enforcer(
    binding: Binding, buffer: BufferStore, options: SuppressOptions, emit_first: Callable[[], None]
) -> Callable[[], None] | None:
    """Return a function that makes room in a full buffer or raises; None without limits."""
    if options.max_records is None and options.max_bytes is None:
        return None
    records_max = float("inf") if options.max_records is None else options.max_records
    bytes_max = options.max_bytes

    def is_full() -> bool:
        if buffer.record_count > records_max:
            return True
        return bytes_max is not None and buffer.size_bytes > bytes_max

    def make_room() -> None:
        while is_full():
            emit_first()

    def raise_if_full() -> None:
        if is_full():
            raise StreamsError(
                f"the buffer of step {binding.step!r} is full: {buffer.record_count} records "
                f"(max_records={options.max_records}) and {buffer.size_bytes} bytes "
                f"(max_bytes={options.max_bytes}), and what waits may not go on early. Give it "
                "more room, or shorter windows or less grace; with until_time_limit "
                'when_full="emit_early" lets the oldest go'
            )

    return make_room if options.emits_early else raise_if_full
