"""Join records of two streams whose keys are equal and whose times are near.

Each stream keeps its records in a window store. A record is first looked up in the other stream's
store, and then put into its own: so of two records the later to come finds the earlier, and each
pair is joined once. A record that has expired from its store is not found, and one that comes later
than that is not stored.

    before   how much older than a record of this stream one of the other may be, in ms
    after    how much newer; the other stream's side has the two the other way round

Rules: KStreamJoinWindow, KStreamKStreamJoin, StreamStreamJoinUtil.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.keys import TimestampMs
from state.window_duplicates import DuplicatesWindowStore
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.lateness import OnLate, create_late_handler

Joiner = Callable[[Any, Any, Any], Any]
"""Takes key, this side's value and the other side's; returns the joined value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindow:
    """Defines how much older or newer than a record of this side its match may be, in ms."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @property
    def size_ms(self) -> int:
        """Return the length of the window in ms."""
        return self.before_ms + self.after_ms

    @property
    def reversed(self) -> JoinWindow:
        """Return the window as seen from the other side."""
        return JoinWindow(before_ms=self.after_ms, after_ms=self.before_ms, grace_ms=self.grace_ms)


def forward_and_store_join_record(store_name: str, on_late: OnLate | None = None) -> Operator:
    """Return the operator that forwards a record to the join and then stores it.

    A record that is too late is not stored. The store is its stream's window store
    (KStreamJoinWindow).
    """

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise
        store: DuplicatesWindowStore[Any] = binding.context.get_store(store_name)
        put = store.put
        handle_late = create_late_handler(binding, on_late)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            downstream(key, value, timestamp_ms)
            if key is None:
                return
            try:
                is_stored = put(key, value, timestamp_ms, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            if not is_stored:
                handle_late(key, value, timestamp_ms, store.stream_time_ms, None, None)

        return process_record

    return bind_operator


def join_side(other_store: str, window: JoinWindow, joiner: Joiner) -> Operator:
    """Return the operator that joins one side's records with the other side's stored records."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        find_matches = create_match_finder(binding, other_store, window)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped_count += 1
                return
            try:
                matches = find_matches(key, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            for other_ms, other in matches:
                try:
                    joined = joiner(key, value, other)
                except Exception as error:
                    failed(error, key, value)
                    return
                downstream(key, joined, other_ms if other_ms > timestamp_ms else timestamp_ms)

        return process_record

    return bind_operator


def join_with_itself(store_name: str, window: JoinWindow, joiner: Joiner) -> Operator:
    """Return the operator that joins a stream with itself, by a single store of its records.

    It replaces an inner join of a stream with itself (`single.store.self.join`, KIP-862). The
    results are those of the two sides one after the other: the record as the left one with the
    others, then as the right one, itself among them by its time. A record that is as old as one can
    be and still be stored is not joined with itself, as in KStreamKStreamSelfJoin.
    """

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        find = create_match_finder(binding, store_name, window)
        find_reversed = create_match_finder(binding, store_name, window.reversed)
        retention_ms = window.size_ms + window.grace_ms
        stream_time_ms = context.get_store(store_name).stream_time_ms

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            nonlocal stream_time_ms
            if key is None or value is None:
                context.dropped_count += 1
                return
            stream_time_ms = max(stream_time_ms, timestamp_ms)
            try:
                found = [(value, *each) for each in find(key, timestamp_ms)]
                as_right = [(other, ms, value) for ms, other in find_reversed(key, timestamp_ms)]
            except Exception as error:
                failed(error, key, value)
                return
            if timestamp_ms > stream_time_ms - retention_ms + 1:
                older = sum(other_ms <= timestamp_ms for _, other_ms, _ in as_right)
                as_right.insert(older, (value, timestamp_ms, value))
            for left, other_ms, right in found + as_right:
                try:
                    joined = joiner(key, left, right)
                except Exception as error:
                    failed(error, key, value)
                    return
                downstream(key, joined, max(other_ms, timestamp_ms))

        return process_record

    return bind_operator


def create_match_finder(
    binding: Binding, store_name: str, window: JoinWindow
) -> Callable[[Any, int], list[tuple[TimestampMs, Any]]]:
    """Return a function that finds a key's records near a time, as times and values.

    They are in order, the oldest first.
    """
    store: DuplicatesWindowStore[Any] = binding.context.get_store(store_name)
    find_values = store.find_values
    before_ms, after_ms = window.before_ms, window.after_ms

    def find_matches(key: Any, timestamp_ms: int) -> list[tuple[TimestampMs, Any]]:
        # All at once: the disk's iterator is closed before steps downstream are called.
        from_ms, to_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
        return find_values(key, max(from_ms, 0), max(to_ms, 0))

    return find_matches


def forward_joined(binding: Binding) -> ForwardRecord:
    """Bind the merge of a join's two sides: return the function that calls the steps downstream."""
    return binding.downstream
