"""Join tables by foreign key: each left row subscribes to a key of the right table (KIP-213).

    send_subscriptions     left table     a row changed: unsubscribe from the old key, subscribe to
                                          the new
    store_subscriptions    subscriptions  kept by foreign key and row, beside the right table
    join_subscriptions     subscriptions  a response with the value that the right table has now
    respond_to_subscribers right table    a value changed: a response for each row subscribed to it
    join_responses         responses      joined with the left value, if that is still the one that
                                          subscribed

Subscriptions go through a topic by their foreign key, responses back to the partition of their row.
A response may be overtaken by a change of its row: then the hash of the left value that it carries
is not that of the value there is now, and it is dropped: another response is on its way. In an
inner join there may be none, since a row gets no response if the other table still has nothing for
it; and the dropped one may be all that would have deleted an earlier result. So a dropped response
without a value makes its row subscribe again, or, if the row has no foreign key, deletes the
result. Kafka Streams leaves such a result standing (docs/decisions/0024). Both tables are read as
they were emitted last: a change that is still to be emitted at the commit has sent no subscription,
and it may be undone unseen (docs/decisions/0022).

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
"""Takes key and value of a row; returns the key in the other table, or None for none."""
Asked = Iterator[tuple[Any, Instruction]]
"""Foreign keys, each with the instruction of the subscription that is sent to it."""


class Serdes(NamedTuple):
    """Holds the serdes of rows' keys, rows' values and foreign keys.

    Both sides of the join compare and hash the bytes that they write.
    """

    key: Serde[Any]
    """The serde of rows' keys."""
    value: Serde[Any]
    foreign_key: Serde[Any]


def subscribe(view: View, foreign_key: ForeignKey, serdes: Serdes, *, left: bool) -> Operator:
    """Return the operator that forwards a subscription for each row of the left table that changes.

    It unsubscribes from the old foreign key and subscribes to the new one, by `is_left_join` with
    or without a response if there is no value.
    """

    def bind_operator(binding: Binding) -> Update:
        context, downstream, failed = binding.context, binding.downstream, binding.failed
        partition = int(context.task_name.rpartition("_")[2])
        serialize, serialize_key = serdes.value.serialize, serdes.foreign_key.serialize
        is_versioned = view.is_versioned
        requests_for = _for_left_join if left else _for_inner_join

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if is_versioned and not latest:
                context.dropped += 1
                return
            try:
                old_foreign_key = None if old is None else foreign_key(key, old)
                new_foreign_key = None if new is None else foreign_key(key, new)
                if new is not None and new_foreign_key is None and not left:
                    context.dropped += 1  # a row without a foreign key is joined with nothing
                moved = old_foreign_key is not None and (
                    new_foreign_key is None
                    or serialize_key(new_foreign_key) != serialize_key(old_foreign_key)
                )
                row_hash = None if new is None else hash128(serialize(new))
            except Exception as error:
                failed(error, key, new)
                return
            for other, instruction in requests_for(
                old_foreign_key, new_foreign_key, moved, old is None and new is None
            ):
                downstream(other, Subscription(row_hash, instruction, key, partition), timestamp_ms)

        return process_update

    return bind_operator


def _for_inner_join(was: Any, now: Any, moved: bool, nothing: bool) -> Asked:
    """Yield foreign keys and instructions for a change of a row in an inner join.

    A row that had no foreign key was not joined: it needs no response that there is no value.
    """
    if now is None:
        if was is not None:
            yield was, _UNSUBSCRIBE_AND_ANSWER
    elif moved:
        yield was, _UNSUBSCRIBE
        yield now, _ANSWER
    else:
        yield now, _ANSWER_IF_THERE_IS_ONE


def _for_left_join(was: Any, now: Any, moved: bool, nothing: bool) -> Asked:
    """Yield foreign keys and instructions for a change of a row in a left join.

    Each change gets a response, also where there is no foreign key, or no row any more.
    """
    if nothing:
        return
    if moved:
        yield was, _UNSUBSCRIBE
    yield now, _ANSWER


def register(store_name: str, serdes: Serdes) -> Operator:
    """Return the operator that stores each subscription by foreign key and row, and forwards it."""

    def bind_operator(binding: Binding) -> Emit:
        context, downstream, failed = binding.context, binding.downstream, binding.failed
        put = context.store(store_name).put
        serialize_key, serialize_row = serdes.foreign_key.serialize, serdes.key.serialize

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
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

        return process_record

    return bind_operator


def look_up(view: View) -> Operator:
    """Return the operator that responds to each subscription with the right table's value."""

    def bind_operator(binding: Binding) -> Emit:
        downstream, failed = binding.downstream, binding.failed
        get = view.get(replace(binding, passed_on=True))

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            row_hash, instruction, row, partition = value
            if instruction is _UNSUBSCRIBE:
                return
            try:
                current = None if key is None else get(key)
            except Exception as error:  # a user's function, which computes the row, may fail
                failed(error, key, value)
                return
            if current is None:
                if instruction is _ANSWER_IF_THERE_IS_ONE:
                    return
                response_value = None
            else:
                response_value = None if instruction is _UNSUBSCRIBE_AND_ANSWER else current.value
                timestamp_ms = max(timestamp_ms, current.timestamp_ms)
            downstream(row, Answer(row_hash, response_value, partition), timestamp_ms)

        return process_record

    return bind_operator


def tell(view: View, store_name: str, serdes: Serdes) -> Operator:
    """Return the operator that sends an update of the right table to the rows subscribed to it."""

    def bind_operator(binding: Binding) -> Update:
        context, downstream, failed = binding.context, binding.downstream, binding.failed
        subscribed = context.store(store_name).prefix_scan
        serialize_key, is_versioned = serdes.foreign_key.serialize, view.is_versioned

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
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

        return process_update

    return bind_operator


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
    """Return the operator that joins each response with its row, if the row has not changed since.

    `subscription_step` is the step downstream that takes a subscription which is to be sent again.
    Where both tables are `from_one_topic`, one record deletes a row and the value that it refers
    to: the response to the first follows the one to the second, which is dropped.
    """

    def bind_operator(binding: Binding) -> Emit:
        context, failed = binding.context, binding.failed
        downstream = next(emit for name, emit in binding.children.items() if name != asking)
        subscribe_again = None if asking is None else binding.children[asking]
        get, serialize = view.get(replace(binding, passed_on=True)), serdes.value.serialize
        partition = int(context.task_name.rpartition("_")[2])

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            row_hash, other, _ = value
            joined = None
            try:
                row = get(key)
                current = None if row is None else hash128(serialize(row.value))
                if row_hash != current:  # the row has changed since it subscribed
                    context.dropped += 1
                    if subscribe_again is None or other is not None:
                        return
                    foreign_key_now = None if row is None else foreign_key(key, row.value)
                    if foreign_key_now is not None:
                        subscribe_again(
                            foreign_key_now,
                            Subscription(current, _ANSWER, key, partition),
                            timestamp_ms,
                        )
                        return
                    if of_one_topic and current is None:
                        return
                elif other is not None or (left and row is not None):
                    joined = joiner(None if row is None else row.value, other)
            except Exception as error:
                failed(error, key, other)
                return
            downstream(key, joined, timestamp_ms)

        return process_record

    return bind_operator
