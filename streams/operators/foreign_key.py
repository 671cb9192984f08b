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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from streams.common.murmur3 import murmur3_hash128
from streams.graph.nodes import Binding, ForwardRecord, ForwardUpdate, Operator
from streams.graph.views import TableView
from streams.operators.row_hashes import RowHasher
from streams.serdes.foreign_key_messages import (
    SubscriptionInstruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
    encode_combined_key_prefix,
)
from streams.serdes.serde import Serde

_UNSUBSCRIBE = SubscriptionInstruction.UNSUBSCRIBE
_UNSUBSCRIBE_AND_RESPOND = SubscriptionInstruction.UNSUBSCRIBE_AND_RESPOND
_SUBSCRIBE_AND_RESPOND = SubscriptionInstruction.SUBSCRIBE_AND_RESPOND
_SUBSCRIBE_RESPOND_IF_FOUND = SubscriptionInstruction.SUBSCRIBE_RESPOND_IF_FOUND

ForeignKey = Callable[[Any, Any], Any]
"""Takes key and value of a row; returns the key in the other table, or None for none."""
SubscriptionRequests = Iterator[tuple[Any, SubscriptionInstruction]]
"""Foreign keys, each with the instruction of the subscription that is sent to it."""


class ForeignKeySerdes(NamedTuple):
    """Holds the serdes of rows' keys, rows' values and foreign keys.

    Both sides of the join compare and hash the bytes that they write.
    """

    key: Serde[Any]
    """The serde of rows' keys."""
    value: Serde[Any]
    foreign_key: Serde[Any]


def send_subscriptions(
    view: TableView,
    foreign_key: ForeignKey,
    serdes: ForeignKeySerdes,
    *,
    is_left_join: bool,
    row_topics: Iterable[str] = (),
) -> Operator:
    """Return the operator that forwards a subscription for each row of the left table that changes.

    It unsubscribes from the old foreign key and subscribes to the new one, by `is_left_join` with
    or without a response if there is no value. The values of `row_topics` may be rows as they are.
    """

    def bind_operator(binding: Binding) -> ForwardUpdate:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        partition = int(context.task_name.rpartition("_")[2])
        hasher, serialize_key = RowHasher(serdes.value.serialize), serdes.foreign_key.serialize
        hash_row = hasher.hash_row
        for topic in row_topics:
            # Other joins of the same table hash the same rows: they find what the first computes.
            context.value_previews.setdefault(topic, hasher.hash_values_ahead)
        is_versioned = view.is_versioned
        requests_for = list_left_join_requests if is_left_join else list_inner_join_requests

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if is_versioned and not latest:
                context.dropped_count += 1
                return
            try:
                old_foreign_key = None if old is None else foreign_key(key, old)
                new_foreign_key = None if new is None else foreign_key(key, new)
                if new is not None and new_foreign_key is None and not is_left_join:
                    context.dropped_count += 1  # a row without a foreign key is joined with nothing
                moved = old_foreign_key is not None and (
                    new_foreign_key is None
                    or serialize_key(new_foreign_key) != serialize_key(old_foreign_key)
                )
                row_hash = None if new is None else hash_row(new)
            except Exception as error:
                failed(error, key, new)
                return
            for other, instruction in requests_for(
                old_foreign_key, new_foreign_key, moved, old is None and new is None
            ):
                downstream(
                    other, SubscriptionWrapper(row_hash, instruction, key, partition), timestamp_ms
                )

        return process_update

    return bind_operator


def list_inner_join_requests(
    old_foreign_key: Any, new_foreign_key: Any, has_moved: bool, has_no_row: bool
) -> SubscriptionRequests:
    """Yield the subscription requests (foreign key, instruction) of a row's change, inner join.

    A row that had no foreign key was not joined: it needs no response that there is no value.
    """
    if new_foreign_key is None:
        if old_foreign_key is not None:
            yield old_foreign_key, _UNSUBSCRIBE_AND_RESPOND
    elif has_moved:
        yield old_foreign_key, _UNSUBSCRIBE
        yield new_foreign_key, _SUBSCRIBE_AND_RESPOND
    else:
        yield new_foreign_key, _SUBSCRIBE_RESPOND_IF_FOUND


def list_left_join_requests(
    old_foreign_key: Any, new_foreign_key: Any, has_moved: bool, has_no_row: bool
) -> SubscriptionRequests:
    """Yield the subscription requests (foreign key, instruction) of a row's change, left join.

    Each change gets a response, also where there is no foreign key, or no row any more.
    """
    if has_no_row:
        return
    if has_moved:
        yield old_foreign_key, _UNSUBSCRIBE
    yield new_foreign_key, _SUBSCRIBE_AND_RESPOND


def store_subscriptions(store_name: str, serdes: ForeignKeySerdes) -> Operator:
    """Return the operator that stores each subscription by foreign key and row, and forwards it."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        put = context.get_store(store_name).put
        serialize_key, serialize_row = serdes.foreign_key.serialize, serdes.key.serialize

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is not None:
                subscribes = value.instruction >= _SUBSCRIBE_AND_RESPOND
                try:
                    combined = encode_combined_key_prefix(serialize_key(key)) + serialize_row(
                        value.key
                    )
                    put(combined, value if subscribes else None, timestamp_ms)
                except Exception as error:
                    failed(error, key, value)
                    return
            elif value.instruction is not _SUBSCRIBE_AND_RESPOND:
                context.dropped_count += 1
                return
            downstream(key, value, timestamp_ms)

        return process_record

    return bind_operator


def join_subscriptions(view: TableView) -> Operator:
    """Return the operator that responds to each subscription with the right table's value."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise
        get = view.create_row_getter(replace(binding, reads_emitted_values=True))

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
                if instruction is _SUBSCRIBE_RESPOND_IF_FOUND:
                    return
                response_value = None
            else:
                response_value = None if instruction is _UNSUBSCRIBE_AND_RESPOND else current.value
                timestamp_ms = max(timestamp_ms, current.timestamp_ms)
            downstream(
                row, SubscriptionResponseWrapper(row_hash, response_value, partition), timestamp_ms
            )

        return process_record

    return bind_operator


def respond_to_subscribers(view: TableView, store_name: str, serdes: ForeignKeySerdes) -> Operator:
    """Return the operator that sends an update of the right table to the rows subscribed to it."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        subscribed = context.get_store(store_name).prefix_scan
        serialize_key, is_versioned = serdes.foreign_key.serialize, view.is_versioned

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if key is None or (is_versioned and not latest):
                context.dropped_count += 1
                return
            try:
                prefix = encode_combined_key_prefix(serialize_key(key))
            except Exception as error:
                failed(error, key, new)
                return
            for _, (row_hash, _, row, partition) in subscribed(prefix):
                downstream(row, SubscriptionResponseWrapper(row_hash, new, partition), timestamp_ms)

        return process_update

    return bind_operator


def join_responses(
    view: TableView,
    joiner: Callable[[Any, Any], Any],
    foreign_key: ForeignKey,
    serdes: ForeignKeySerdes,
    *,
    is_left_join: bool,
    subscription_step: str | None,
    from_one_topic: bool = False,
) -> Operator:
    """Return the operator that joins each response with its left row, unless that has changed.

    `subscription_step` is the step downstream that takes a subscription which is to be sent again.
    Where both tables are `from_one_topic`, one record deletes a row and the value that it refers
    to: the response to the first follows the one to the second, which is dropped.
    """

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        downstream = next(
            emit for name, emit in binding.children.items() if name != subscription_step
        )
        subscribe_again = None if subscription_step is None else binding.children[subscription_step]
        get, serialize = (
            view.create_row_getter(replace(binding, reads_emitted_values=True)),
            serdes.value.serialize,
        )
        partition = int(context.task_name.rpartition("_")[2])

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            row_hash, other, _ = value
            joined = None
            try:
                row = get(key)
                current = None if row is None else murmur3_hash128(serialize(row.value))
                if row_hash != current:  # the row has changed since it subscribed
                    context.dropped_count += 1
                    if subscribe_again is None or other is not None:
                        return
                    foreign_key_now = None if row is None else foreign_key(key, row.value)
                    if foreign_key_now is not None:
                        subscribe_again(
                            foreign_key_now,
                            SubscriptionWrapper(current, _SUBSCRIBE_AND_RESPOND, key, partition),
                            timestamp_ms,
                        )
                        return
                    if from_one_topic and current is None:
                        return
                elif other is not None or (is_left_join and row is not None):
                    joined = joiner(None if row is None else row.value, other)
            except Exception as error:
                failed(error, key, other)
                return
            downstream(key, joined, timestamp_ms)

        return process_record

    return bind_operator
