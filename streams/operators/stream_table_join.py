"""Join each record of a stream with a table's row of its key, as the row is at that time.

Only records make results; the table's updates make none. Of a versioned table it is the row as of
the record's time. With a grace, records wait for that long, in the order of their times, for
updates of the table that come late.

    key or mapped key   value   row    inner     left
    any                 None    any    dropped   dropped
    None                some    -      dropped   joined with None
    some                some    None   nothing   joined with None
    some                some    some   joined    joined

The buffer of waiting records has these keys: 0 (1 byte), timestamp (int64), the key, a number
(int32) that tells records of one key and time apart. A record without a key does not wait, where
Kafka Streams ends with a NullPointerException. Rules: KStreamKTableJoinProcessor,
RocksDBTimeOrderedKeyValueBuffer, TimeFirstWindowKeySchema.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.buffer import BufferStore
from streams.graph.nodes import Binding, ForwardRecord, Operator, StoreSpec
from streams.graph.views import GlobalTableView, TableView
from streams.operators.record_origin import OriginMessage, capture_origin
from streams.operators.stream_join import Joiner

KeyOf = Callable[[Any, Any], Any]
"""Takes key and value of a record; returns the key of the row, or None for none."""

_TIME = struct.Struct(">xq")
_NUMBER = struct.Struct(">i")
_NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class JoinGrace:
    """Defines how long, in ms, a stream's records wait before they are joined, and their buffer."""

    grace_ms: int
    buffer: StoreSpec


def buffer_key_time_ms(buffer_key: bytes) -> int:
    """Return the record's timestamp, in ms, that is encoded in a key of the grace buffer."""
    return _TIME.unpack_from(buffer_key)[0]  # type: ignore[no-any-return]


def join_records_with_table(
    table: TableView | GlobalTableView,
    joiner: Joiner,
    *,
    is_left_join: bool,
    key_of: KeyOf | None = None,
) -> Operator:
    """Return the operator that joins each record, as it comes, with a row of `table`.

    The row is that of the record's key, or of the key that `key_of` returns.
    """

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        find_row = _create_row_finder(binding, table)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if value is None:
                context.dropped_count += 1
                return
            try:
                table_key = key if key_of is None else key_of(key, value)
                row = None if table_key is None else find_row(table_key, timestamp_ms)
                if row is not None or is_left_join:
                    joined = joiner(key, value, row)
            except Exception as error:
                failed(error, key, value)
                return
            if row is None and not is_left_join:
                if table_key is None:
                    context.dropped_count += 1
                return
            downstream(key, joined, timestamp_ms)

        return process_record

    return bind_operator


def join_records_after_grace(
    view: TableView, joiner: Joiner, grace: JoinGrace, *, is_left_join: bool
) -> Operator:
    """Return the operator that joins each record after the grace has passed in stream time."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        join_now = join_records_with_table(view, joiner, is_left_join=is_left_join)(binding)
        spec, grace_ms = grace.buffer, grace.grace_ms
        buffer: BufferStore = context.get_store(spec.name)
        encode_key, encode_value = spec.key.serialize, spec.value.serialize
        join_first = _create_buffer_join(binding, grace, join_now)
        # Records that wait from before a restart keep their numbers, so that they go first.
        sequence = max(
            (_NUMBER.unpack(key[-_NUMBER.size :])[0] for key in buffer.buffered_keys()), default=0
        )
        time = context.get_or_create_stream_time(binding.step)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            nonlocal sequence
            if key is None or value is None or timestamp_ms < time.ms - grace_ms:
                join_now(key, value, timestamp_ms)
                return
            try:
                key_bytes, value_bytes = encode_key(key), encode_value(value)
            except Exception as error:
                failed(error, key, value)
                return
            time.ms = max(time.ms, timestamp_ms)
            message = context.message
            key_prefix = _TIME.pack(timestamp_ms) + key_bytes
            sequence = (sequence + 1) & _NUMBER_MAX
            while buffer.find_change(key_prefix + _NUMBER.pack(sequence)) is not None:
                sequence = (sequence + 1) & _NUMBER_MAX
            origin = capture_origin(message, timestamp_ms)
            buffer.put(key_prefix + _NUMBER.pack(sequence), timestamp_ms, None, value_bytes, origin)
            while buffer.min_time_ms <= time.ms - grace_ms:
                join_first()
            context.message = message

        return process_record

    return bind_operator


def _create_buffer_join(
    binding: Binding, grace: JoinGrace, join_record: ForwardRecord
) -> Callable[[], None]:
    """Return a function that joins the earliest record of the grace buffer and removes it."""
    context, failed = binding.context, binding.skip_record_or_raise
    buffer: BufferStore = context.get_store(grace.buffer.name)
    decode_key, decode_value = grace.buffer.key.deserialize, grace.buffer.value.deserialize

    def join_first() -> None:
        buffer_key, change = buffer.peek_first()
        origin = change.origin
        context.message = OriginMessage(origin)
        key_bytes = buffer_key[_TIME.size : -_NUMBER.size]
        try:
            key = decode_key(key_bytes)
            value = None if change.new is None else decode_value(change.new)
        except Exception as error:
            failed(error, key_bytes, change.new)
        else:
            join_record(key, value, origin.timestamp_ms)
        buffer.evict_first()

    return join_first


def _create_row_finder(
    binding: Binding, table: TableView | GlobalTableView
) -> Callable[[Any, int], Any]:
    """Return a function of key and time in ms that returns a table's value, or None if none.

    Of a versioned table it is the value as of that time, of others the current one.
    """
    if not isinstance(table, GlobalTableView) and table.is_versioned:
        get_as_of = table.create_row_getter_as_of(binding)

        def find_as_of(key: Any, timestamp_ms: int) -> Any:
            found = get_as_of(key, timestamp_ms)
            return None if found is None else found.value

        return find_as_of
    get = table.create_row_getter(binding)

    def find_row(key: Any, timestamp_ms: int) -> Any:
        found = get(key)
        return None if found is None else found.value

    return find_row
