"""Foreign-key join: each row of the left table subscribes to a key of the right one (KIP-213).

    subscribe    left table     a row changed: unsubscribe from the old key, subscribe to the new
    register     subscriptions  kept by foreign key and row, beside the right table
    look_up      subscriptions  an answer with the value that the right table has now
    tell         right table    a value changed: an answer for each row that is subscribed to it
    resolve      answers        joined with the left value, if that is still the one that asked

Subscriptions go through a topic by their foreign key, answers back to the partition of their row.
An answer may be overtaken by a change of its row: then the hash of the left value that it carries
is not that of the value there is now, and it is dropped: another answer is on its way. In an inner
join there may be none, since a row is not told that the other table still has nothing for it; and
what was dropped may be all that would have taken an earlier result away. So an answer without a
value that is dropped makes its row ask again, or, if the row has no foreign key, takes the result
away. Kafka Streams leaves such a result standing (docs/decisions/0024). Both tables are looked at
as they were passed on last: what still waits for the commit nobody has asked for, and it may go
again unseen (docs/decisions/0022).

Rules: SubscriptionSendProcessorSupplier, SubscriptionReceiveProcessorSupplier,
SubscriptionJoinProcessorSupplier, ForeignTableJoinProcessorSupplier, ResponseJoinProcessorSupplier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from streams.murmur3 import hash128
from streams.serdes.serde import Serde
from streams.serdes.subscriptions import Answer, Instruction, Subscription, prefix_of
from streams.topology.nodes import Binding, Emit, Operator, Update
from streams.topology.views import View

_UNSUBSCRIBE = Instruction.UNSUBSCRIBE
_UNSUBSCRIBE_AND_ANSWER = Instruction.UNSUBSCRIBE_AND_ANSWER
_ANSWER = Instruction.ANSWER
_ANSWER_IF_THERE_IS_ONE = Instruction.ANSWER_IF_THERE_IS_ONE

ForeignKey = Callable[[Any, Any], Any]
"""Key and value of a row -> the key in the other table; None: none."""
Asked = Iterator[tuple[Any, Instruction]]
"""Foreign keys, and what is asked of each."""


class Serdes(NamedTuple):
    """Of what is compared and hashed on both sides."""

    key: Serde[Any]
    """Of rows."""
    value: Serde[Any]
    foreign_key: Serde[Any]


def subscribe(view: View, foreign_key: ForeignKey, serdes: Serdes, *, left: bool) -> Operator:
    def bind(at: Binding) -> Update:
        context, downstream, failed = at.context, at.downstream, at.failed
        partition = int(context.task_name.rpartition("_")[2])
        serialize, serialize_key = serdes.value.serialize, serdes.foreign_key.serialize
        is_versioned = view.is_versioned
        asked = _for_left_join if left else _for_inner_join

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if is_versioned and not latest:
                context.dropped += 1
                return
            try:
                was = None if old is None else foreign_key(key, old)
                now = None if new is None else foreign_key(key, new)
                if new is not None and now is None and not left:
                    context.dropped += 1  # a row without a foreign key joins nothing
                moved = was is not None and (
                    now is None or serialize_key(now) != serialize_key(was)
                )
                row_hash = None if new is None else hash128(serialize(new))
            except Exception as error:
                failed(error, key, new)
                return
            for other, instruction in asked(was, now, moved, old is None and new is None):
                downstream(other, Subscription(row_hash, instruction, key, partition), timestamp_ms)

        return process

    return bind


def _for_inner_join(was: Any, now: Any, moved: bool, nothing: bool) -> Asked:
    """A row that had no foreign key was not joined: it needs no answer that there is no value."""
    if now is None:
        if was is not None:
            yield was, _UNSUBSCRIBE_AND_ANSWER
    elif moved:
        yield was, _UNSUBSCRIBE
        yield now, _ANSWER
    else:
        yield now, _ANSWER_IF_THERE_IS_ONE


def _for_left_join(was: Any, now: Any, moved: bool, nothing: bool) -> Asked:
    """Each change gets an answer, also where there is no foreign key, or no row any more."""
    if nothing:
        return
    if moved:
        yield was, _UNSUBSCRIBE
    yield now, _ANSWER


def register(store_name: str, serdes: Serdes) -> Operator:
    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        put = context.store(store_name).put
        serialize_key, serialize_row = serdes.foreign_key.serialize, serdes.key.serialize

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is not None:
                subscribes = value.instruction >= _ANSWER
                try:
                    combined = prefix_of(serialize_key(key)) + serialize_row(value.key)
                    put(combined, value if subscribes else None, timestamp_ms)
                except Exception as error:
                    failed(error, key, value)
                    return
            elif value.instruction is not _ANSWER:
                context.dropped += 1
                return
            downstream(key, value, timestamp_ms)

        return process

    return bind


def look_up(view: View) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed
        get = view.get(replace(at, passed_on=True))

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            row_hash, instruction, row, partition = value
            if instruction is _UNSUBSCRIBE:
                return
            try:
                found = None if key is None else get(key)
            except Exception as error:  # of a user's function, by which the row is computed
                failed(error, key, value)
                return
            if found is None:
                if instruction is _ANSWER_IF_THERE_IS_ONE:
                    return
                answered = None
            else:
                answered = None if instruction is _UNSUBSCRIBE_AND_ANSWER else found.value
                timestamp_ms = max(timestamp_ms, found.timestamp_ms)
            downstream(row, Answer(row_hash, answered, partition), timestamp_ms)

        return process

    return bind


def tell(view: View, store_name: str, serdes: Serdes) -> Operator:
    def bind(at: Binding) -> Update:
        context, downstream, failed = at.context, at.downstream, at.failed
        subscribed = context.store(store_name).prefix_scan
        serialize_key, is_versioned = serdes.foreign_key.serialize, view.is_versioned

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if key is None or (is_versioned and not latest):
                context.dropped += 1
                return
            try:
                prefix = prefix_of(serialize_key(key))
            except Exception as error:
                failed(error, key, new)
                return
            for _, (row_hash, _, row, partition) in subscribed(prefix):
                downstream(row, Answer(row_hash, new, partition), timestamp_ms)

        return process

    return bind


def resolve(
    view: View,
    joiner: Callable[[Any, Any], Any],
    foreign_key: ForeignKey,
    serdes: Serdes,
    *,
    left: bool,
    asking: str | None,
    of_one_topic: bool = False,
) -> Operator:
    """`asking` is the step behind this one that takes what is to be asked again. Where both tables
    are `of_one_topic`, one record deletes a row and the value that it refers to: the answer to the
    first follows the one to the second, which is dropped."""

    def bind(at: Binding) -> Emit:
        context, failed = at.context, at.failed
        downstream = next(emit for name, emit in at.children.items() if name != asking)
        ask = None if asking is None else at.children[asking]
        get, serialize = view.get(replace(at, passed_on=True)), serdes.value.serialize
        partition = int(context.task_name.rpartition("_")[2])

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            row_hash, other, _ = value
            joined = None
            try:
                row = get(key)
                current = None if row is None else hash128(serialize(row.value))
                if row_hash != current:  # the row has changed since it asked
                    context.dropped += 1
                    if ask is None or other is not None:
                        return
                    now = None if row is None else foreign_key(key, row.value)
                    if now is not None:
                        ask(now, Subscription(current, _ANSWER, key, partition), timestamp_ms)
                        return
                    if of_one_topic and current is None:
                        return
                elif other is not None or (left and row is not None):
                    joined = joiner(None if row is None else row.value, other)
            except Exception as error:
                failed(error, key, other)
                return
            downstream(key, joined, timestamp_ms)

        return process

    return bind
