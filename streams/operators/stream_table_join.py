"""Stream-table join: each record with the table's row of its key, as the row is at that moment.

Only records make results; the table's updates make none. Of a versioned table it is the row as of
the record's time. With a grace, records wait for so long, in the order of their times, for updates
of the table that come late.

    key or mapped key   value   row    inner     left
    any                 None    any    dropped   dropped
    None                some    -      dropped   joined with None
    some                some    None   nothing   joined with None
    some                some    some   joined    joined

What waits is in a buffer: key 0 (1 byte), timestamp (int64), the key, a number (int32) that tells
records of one key and time apart. A record without a key does not wait, where Kafka Streams ends
with a NullPointerException.
Rules: KStreamKTableJoinProcessor, RocksDBTimeOrderedKeyValueBuffer, TimeFirstWindowKeySchema.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.buffer import BufferStore
from streams.operators.recalled import Recalled, origin_of
from streams.operators.stream_join import Joiner
from streams.topology.nodes import Binding, Emit, Operator, StoreSpec
from streams.topology.views import GlobalView, View

KeyOf = Callable[[Any, Any], Any]
"""Key, value -> the key to look up; None: none."""

_TIME = struct.Struct(">xq")
_NUMBER = struct.Struct(">i")
_NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Grace:
    """How long records wait, and where."""

    ms: int
    buffer: StoreSpec


def time_of(key: bytes) -> int:
    """The time in ms that a key of the buffer has in it."""
    return _TIME.unpack_from(key)[0]  # type: ignore[no-any-return]


def join_table(
    table: View | GlobalView, joiner: Joiner, *, left: bool, key_of: KeyOf | None = None
) -> Operator:
    """Each record joined as it comes, with the row of its key or of what `key_of` says."""

    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        find = _finder(at, table)

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if value is None:
                context.dropped += 1
                return
            try:
                mapped = key if key_of is None else key_of(key, value)
                row = None if mapped is None else find(mapped, timestamp_ms)
                if row is not None or left:
                    joined = joiner(key, value, row)
            except Exception as error:
                failed(error, key, value)
                return
            if row is None and not left:
                if mapped is None:
                    context.dropped += 1
                return
            downstream(key, joined, timestamp_ms)

        return process

    return bind


def join_table_later(view: View, joiner: Joiner, grace: Grace, *, left: bool) -> Operator:
    """Each record joined when the time of those that came is `grace` past its own."""

    def bind(at: Binding) -> Emit:
        context, failed = at.context, at.failed
        join_now = join_table(view, joiner, left=left)(at)
        spec, grace_ms = grace.buffer, grace.ms
        buffer: BufferStore = context.store(spec.name)
        encode_key, encode = spec.key.serialize, spec.value.serialize
        let_first_go = _letting_go(at, grace, join_now)
        # What waits from before a restart goes first.
        number = max(
            (_NUMBER.unpack(key[-_NUMBER.size :])[0] for key in buffer.waiting_keys()), default=0
        )
        time = context.step_time(at.step)

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            nonlocal number
            if key is None or value is None or timestamp_ms < time.ms - grace_ms:
                join_now(key, value, timestamp_ms)
                return
            try:
                key_bytes, value_bytes = encode_key(key), encode(value)
            except Exception as error:
                failed(error, key, value)
                return
            time.ms = max(time.ms, timestamp_ms)
            message = context.message
            place = _TIME.pack(timestamp_ms) + key_bytes
            number = (number + 1) & _NUMBER_MAX
            while buffer.waiting(place + _NUMBER.pack(number)) is not None:
                number = (number + 1) & _NUMBER_MAX
            origin = origin_of(message, timestamp_ms)
            buffer.put(place + _NUMBER.pack(number), timestamp_ms, None, value_bytes, origin)
            while buffer.first_ms <= time.ms - grace_ms:
                let_first_go()
            context.message = message

        return process

    return bind


def _letting_go(at: Binding, grace: Grace, join_now: Emit) -> Callable[[], None]:
    context, failed = at.context, at.failed
    buffer: BufferStore = context.store(grace.buffer.name)
    decode_key, decode = grace.buffer.key.deserialize, grace.buffer.value.deserialize

    def let_first_go() -> None:
        place, change = buffer.first()
        origin = change.origin
        context.message = Recalled(origin)
        key_bytes = place[_TIME.size : -_NUMBER.size]
        try:
            key = decode_key(key_bytes)
            value = None if change.new is None else decode(change.new)
        except Exception as error:
            failed(error, key_bytes, change.new)
        else:
            join_now(key, value, origin.timestamp_ms)
        buffer.remove_first()

    return let_first_go


def _finder(at: Binding, table: View | GlobalView) -> Callable[[Any, int], Any]:
    """Key, time in ms -> the row of the key, of a versioned table as of that time; or None."""
    if not isinstance(table, GlobalView) and table.is_versioned:
        get_as_of = table.get_as_of(at)

        def find_as_of(key: Any, timestamp_ms: int) -> Any:
            found = get_as_of(key, timestamp_ms)
            return None if found is None else found.value

        return find_as_of
    get = table.get(at)

    def find(key: Any, timestamp_ms: int) -> Any:
        found = get(key)
        return None if found is None else found.value

    return find
