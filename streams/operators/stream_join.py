"""Stream-stream join: records of two streams meet if their keys are equal and their times near.

Each stream keeps its records in a window store. A record first looks into the other stream's, and
then goes into its own: so of two records the later to come finds the earlier, and each pair is made
once. What has left its store is found no more, and a record that comes later than that is not kept.

    before   how much older than a record of this stream one of the other may be, in ms
    after    how much newer; the other stream's side has the two the other way round

Rules: KStreamJoinWindow, KStreamKStreamJoin, StreamStreamJoinUtil.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.window import WindowStore
from streams.operators.lateness import OnLate, lateness
from streams.topology.nodes import Binding, Emit, Operator

Joiner = Callable[[Any, Any, Any], Any]
"""Key, this side's value, the other's -> the joined value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindow:
    """Where the other side's records lie, seen from a record of this side. In ms."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def reversed(self) -> JoinWindow:
        """Seen from the other side."""
        return JoinWindow(before_ms=self.after_ms, after_ms=self.before_ms, grace_ms=self.grace_ms)


def remember(store_name: str, on_late: OnLate | None = None) -> Operator:
    """A record goes to the join first, and then into its stream's store, unless it is too late."""

    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed
        store: WindowStore[Any] = at.context.store(store_name)
        put = store.put
        late = lateness(at, on_late)

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            downstream(key, value, timestamp_ms)
            if key is None:
                return
            try:
                kept = put(key, value, timestamp_ms, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            if not kept:
                late(key, value, timestamp_ms, store.stream_time_ms, None, None)

        return process

    return bind


def join_side(other_store: str, window: JoinWindow, joiner: Joiner) -> Operator:
    """The inner join as one of its streams sees it."""

    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        find = finder(at, other_store, window)

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped += 1
                return
            try:
                found = find(key, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            for other_ms, other in found:
                try:
                    joined = joiner(key, value, other)
                except Exception as error:
                    failed(error, key, value)
                    return
                downstream(key, joined, other_ms if other_ms > timestamp_ms else timestamp_ms)

        return process

    return bind


def self_join(store_name: str, window: JoinWindow, joiner: Joiner) -> Operator:
    """A stream with itself, its records kept once (`single.store.self.join`, KIP-862).

    The results are those of the two sides one after the other: the record as the left one with the
    others, then as the right one, itself among them by its time. A record that is as old as one can
    be and still be kept is not joined with itself, as in KStreamKStreamSelfJoin.
    """

    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        find = finder(at, store_name, window)
        find_reversed = finder(at, store_name, window.reversed)
        retention_ms = window.size_ms + window.grace_ms
        stream_time_ms = context.store(store_name).stream_time_ms

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            nonlocal stream_time_ms
            if key is None or value is None:
                context.dropped += 1
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

        return process

    return bind


def finder(
    at: Binding, store_name: str, window: JoinWindow
) -> Callable[[Any, int], list[tuple[int, Any]]]:
    """Key, time in ms -> times and values of what the store has of the key, oldest first."""
    fetch = at.context.store(store_name).fetch
    before_ms, after_ms = window.before_ms, window.after_ms

    def find(key: Any, timestamp_ms: int) -> list[tuple[int, Any]]:
        # All at once: the disk's iterator is given back before the steps after are called.
        from_ms, to_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
        return list(fetch(key, max(from_ms, 0), max(to_ms, 0)))

    return find


def pass_on(at: Binding) -> Emit:
    """Where the two sides meet again: nothing is added to a record's way."""
    return at.downstream
