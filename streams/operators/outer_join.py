"""Join two streams; join a record without a match with None once its window has closed.

Until then it waits in a store that both sides share, in the order of timestamps; a match removes
it. The store is read when a record of either side advances the join's time, at most once in
`emit_interval_ms`, by a clock that nobody sets; and not before the record that was read last is
due, which, seen from the oldest, may be late. That is how Kafka Streams avoids reads of the store,
and as there the interval is 0 in the test driver.

    a record without a match                    is joined with None
    has no key                                  at once
    is further behind than the window reaches   at once, whatever the grace
    any other                                   when its window and the grace have closed: with its
                                                own time, and the headers of the record that
                                                closed it

Rules: KStreamKStreamJoin (emitNonJoinedOuterRecords), KAFKA-10847, KAFKA-13216.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.key_value import KeyValueStore
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.copies import create_copier
from streams.operators.stream_join import Joiner, JoinWindow, create_match_finder
from streams.serdes import Serde
from streams.serdes.join_sides import LeftOrRightValue, TimestampedKeyAndJoinSide


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterJoinOptions:
    """Holds the window, joiner and shared store of one left or outer join, used by both sides."""

    store_name: str
    """The name of the store of records without a match."""
    is_full_outer: bool
    """Whether the right side's records are joined with None too."""
    window: JoinWindow
    """The join window as seen from the left side."""
    joiner: Joiner
    """Takes key, left value or None, and right value or None; returns the joined value."""
    emit_interval_ms: int


class UnmatchedRecords:
    """Keeps the records of both sides of a join that have not been joined yet."""

    def __init__(
        self, join: OuterJoinOptions, context: InternalProcessorContext, stream_time_ms: int
    ) -> None:
        self.stream_time_ms = stream_time_ms
        """The largest time of the records of both sides."""
        self.store: KeyValueStore[TimestampedKeyAndJoinSide, list[LeftOrRightValue]]
        self.store = context.get_store(join.store_name)
        window = join.window
        self._open_ms = {
            True: window.after_ms + window.grace_ms,
            False: window.before_ms + window.grace_ms,
        }
        self._joiner = join.joiner
        self._monotonic_s = context.monotonic_s
        self._interval_s = 0.0 if context.observer else join.emit_interval_ms / 1_000
        self._next_emit_s = 0.0
        self._seen_ms: int | None = next((key.timestamp_ms for key, _ in self.store.all()), None)
        """The time of the record that was read last in the store, or of an older one that came
        after that; None: the store was empty."""

    def add_record(self, is_left: bool, key: Any, value: Any, timestamp_ms: int) -> None:
        """Store a record that has not been joined with another one yet."""
        entry = self.store.get_entry_for_update(
            TimestampedKeyAndJoinSide(timestamp_ms, is_left, key)
        )
        mine = LeftOrRightValue(is_left, value)
        waiting = entry.value
        if waiting is None:
            waiting = [mine]
        else:
            waiting.append(mine)
        entry.value = waiting
        entry.timestamp_ms = timestamp_ms
        if self._seen_ms is None or timestamp_ms < self._seen_ms:
            self._seen_ms = timestamp_ms

    def remove_matched(
        self, is_left: bool, key: Any, record_time_ms: int, match_time_ms: int
    ) -> None:
        """Remove one side's unmatched records with this key and time: they have found a match."""
        sided = TimestampedKeyAndJoinSide(record_time_ms, is_left, key)
        if self.store.get(sided) is not None:
            self.store.put(sided, None, match_time_ms)

    def emit_closed_if_due(self, binding: Binding, is_left: bool) -> None:
        """Join with None the unmatched records whose join window has closed, and forward them.

        Call it after a record of the side `is_left` has advanced the join's time.
        """
        seen_ms, open_ms = self._seen_ms, self._open_ms[is_left]
        if (open_ms <= 0) if seen_ms is None else seen_ms + open_ms >= self.stream_time_ms:
            return
        if self._interval_s:
            now_s = self._monotonic_s()
            if now_s < self._next_emit_s:
                return
            self._next_emit_s = now_s + self._interval_s
        self._emit_closed(binding)

    def _emit_closed(self, binding: Binding) -> None:
        downstream, joiner, store = binding.downstream, self._joiner, self.store
        stream_time_ms = self.stream_time_ms
        still_open: set[bool] = set()
        self._seen_ms = None
        for sided, values in store.all():
            self._seen_ms, is_left, key = sided
            if len(still_open) == 2:
                return
            if is_left in still_open or self._seen_ms + self._open_ms[is_left] >= stream_time_ms:
                still_open.add(is_left)
                if len(still_open) == 2 and len(values) > 1:
                    return  # Kafka Streams, which reads the values one by one, ends at the second
                continue
            for _, value in values:
                try:
                    joined = joiner(key, value, None) if is_left else joiner(key, None, value)
                except Exception as error:
                    binding.skip_record_or_raise(error, key, value)
                    continue
                downstream(key, joined, self._seen_ms)
            store.put(sided, None, stream_time_ms)


def outer_join_side(
    join: OuterJoinOptions,
    *,
    is_left: bool,
    this_store: str,
    other_store: str,
    value_serde: Serde[Any],
) -> Operator:
    """Return the operator that joins one side's records, whose values have `value_serde`."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        shared = binding.context.shared_by_steps
        if join.store_name not in shared:
            stores = map(binding.context.get_store, (this_store, other_store))
            shared[join.store_name] = UnmatchedRecords(
                join, binding.context, max(store.stream_time_ms for store in stores)
            )
        return _JoinSide(
            binding, join, is_left, shared[join.store_name], other_store, value_serde
        ).join_record

    return bind_operator


class _JoinSide:
    """Joins the records of one of the two streams in a task."""

    def __init__(
        self,
        binding: Binding,
        join: OuterJoinOptions,
        is_left: bool,
        unmatched: UnmatchedRecords,
        other_store: str,
        value_serde: Serde[Any],
    ) -> None:
        window = join.window if is_left else join.window.reversed
        self._at, self._is_left, self._waiting = binding, is_left, unmatched
        self._context, self._downstream, self._failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        self._find, self._copied = (
            create_match_finder(binding, other_store, window),
            create_copier(value_serde),
        )
        self._after_ms = window.after_ms
        self._waits, self._others_wait = (
            is_left or join.is_full_outer,
            join.is_full_outer or not is_left,
        )
        joiner = join.joiner
        self._joiner = joiner if is_left else lambda key, mine, other: joiner(key, other, mine)

    def join_record(self, key: Any, value: Any, timestamp_ms: int) -> None:
        waiting = self._waiting
        if timestamp_ms > waiting.stream_time_ms:
            waiting.stream_time_ms = timestamp_ms
        if key is None or value is None:
            if self._waits and value is not None:
                self._join_with_none(key, value, timestamp_ms)
            else:
                self._context.dropped_count += 1
            return
        if timestamp_ms == waiting.stream_time_ms:
            waiting.emit_closed_if_due(self._at, self._is_left)
        try:
            found = self._find(key, timestamp_ms)
        except Exception as error:
            self._failed(error, key, value)
            return
        if found:
            self._join_matches(key, value, timestamp_ms, found)
        elif self._waits:
            self._keep_or_join_unmatched(key, value, timestamp_ms)

    def _join_matches(
        self, key: Any, value: Any, timestamp_ms: int, matches: list[tuple[int, Any]]
    ) -> None:
        for other_ms, other in matches:
            if self._others_wait:
                self._waiting.remove_matched(not self._is_left, key, other_ms, timestamp_ms)
            try:
                joined = self._joiner(key, value, other)
            except Exception as error:
                self._failed(error, key, value)
                return
            self._downstream(key, joined, max(other_ms, timestamp_ms))

    def _keep_or_join_unmatched(self, key: Any, value: Any, timestamp_ms: int) -> None:
        if max(timestamp_ms + self._after_ms, 0) < self._waiting.stream_time_ms:
            self._join_with_none(key, value, timestamp_ms)
            return
        try:
            self._waiting.add_record(self._is_left, key, self._copied(value), timestamp_ms)
        except Exception as error:
            self._failed(error, key, value)

    def _join_with_none(self, key: Any, value: Any, timestamp_ms: int) -> None:
        try:
            joined = self._joiner(key, value, None)
        except Exception as error:
            self._failed(error, key, value)
            return
        self._downstream(key, joined, timestamp_ms)
