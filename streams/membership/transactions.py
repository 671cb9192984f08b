"""List, describe and abort transactions, at their coordinators and in the logs of partitions.

A transaction is aborted by a new epoch of its producer, which fences the old one (KIP-360). One
that hangs, which a partition has open and no coordinator knows of, is aborted by a marker in that
partition (KIP-664). Any user may be shown less than there is: brokers leave out of a list what may
not be described, and no broker lists the ids of a coordinator that is away.
`explain_incomplete_listing` says whether that may be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from streams.common.addresses import Address
from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    ConnectionLost,
    OpenConnection,
    build_entity,
    create_refusal,
    find_coordinator,
    load_request_classes,
)
from streams.membership.response_schemas import DESCRIBE_TRANSACTIONS_API_KEY

_METADATA_API_KEY, _INIT_PRODUCER_ID_API_KEY = 3, 22
_WRITE_TXN_MARKERS_API_KEY, _DESCRIBE_PRODUCERS_API_KEY, _LIST_TRANSACTIONS_API_KEY = 27, 61, 66
_KEY_IS_TRANSACTIONAL_ID = 1
_NO_PRODUCER = -1
_STATE_TOPIC = "__transaction_state"
_PROBE_ID = "~any-transactional-id"
"""An id that nobody has, and that no ACL for the ids of one application covers."""
_TIMEOUT = timedelta(seconds=10)
_ABORTED = (ErrorCode.none, ErrorCode.concurrent_transactions)
"""Signals CONCURRENT_TRANSACTIONS: the coordinator is aborting the open transaction."""
_MOVED = (
    ErrorCode.not_leader_or_follower,
    ErrorCode.leader_not_available,
    ErrorCode.coordinator_load_in_progress,
)
"""Answers of a broker that does not lead the partition, or does not do so yet."""
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The states in which partitions may have the transaction open."""


class DescribedTransactionState(NamedTuple):
    """Holds a transaction as its coordinator describes it; `started_ms` is -1 if none is open."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int
    partitions: Sequence[Partition]


class OpenProducer(NamedTuple):
    """Holds a producer that has a transaction open in a partition, by the partition's log."""

    partition: Partition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def list_brokers(open_connection: OpenConnection) -> list[Address]:
    """Return the addresses of all brokers of the cluster. Raises ConnectionLost."""
    with closing(open_connection(None)) as bootstrap:
        answer = _fetch_ready_metadata(bootstrap, [])
    return [(broker.host, broker.port) for broker in answer.brokers]


def list_transactional_ids(
    connection: BrokerConnection, states: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the transactional ids that a broker coordinates, in certain states or all.

    Raises: ConnectionLost.
    """
    classes = load_request_classes(connection, _LIST_TRANSACTIONS_API_KEY, 1)
    request = build_entity(
        classes["ListTransactionsRequest"],
        state_filters=tuple(states),
        producer_id_filters=(),
        duration_filter=_NO_PRODUCER,
    )
    answer = connection.send_request(request)
    if answer.error_code is not ErrorCode.none:
        raise create_refusal(answer.error_code, "transactions can't be listed")
    for each in answer.transaction_states:
        yield str(each.transactional_id)


def explain_incomplete_listing(open_connection: OpenConnection) -> str | None:
    """Return why lists of transactional ids may lack some that exist; None where they are complete.

    They lack those that this user may not describe (the right Describe on all ids is looked up by
    FindCoordinator of an id that nobody has), and those of coordinators that are away. Ids that
    only an ACL of Deny hides are not found out. Raises: ConnectionLost.
    """
    with closing(open_connection(None)) as bootstrap:
        try:
            find_coordinator(bootstrap, _PROBE_ID, key_type=_KEY_IS_TRANSACTIONAL_ID)
        except AuthorizationError:
            return (
                "this user may not describe all transactional ids, and those that it may not are "
                "not listed: add the ACL Describe on transactional id *"
            )
        except ConnectionLost as error:
            return str(error)
        (topic,) = _fetch_ready_metadata(bootstrap, [_STATE_TOPIC]).topics
    if topic.error_code is ErrorCode.topic_authorization_failed:
        return (
            "this user may not see whether a coordinator is away: add the ACL Describe on topic "
            f"{_STATE_TOPIC}"
        )
    away = sorted(int(part.partition_index) for part in topic.partitions if part.leader_id < 0)
    if away:
        return f"the coordinators of {_STATE_TOPIC}{away} are away, and their ids are not listed"
    return None


def describe_transactions(
    connection: BrokerConnection,
    transactional_ids: Sequence[str],
    on_undescribed: Callable[[str, str], object] = lambda transactional_id, error: None,
) -> Iterator[DescribedTransactionState]:
    """Yield the transactions of these ids, as the broker that coordinates them describes them.

    One whose coordinator has forgotten it meanwhile is left out. `on_undescribed` is called with
    each id that may have a transaction all the same, and the name of the error.
    """
    classes = load_request_classes(connection, DESCRIBE_TRANSACTIONS_API_KEY, 0)
    request = build_entity(
        classes["DescribeTransactionsRequest"], transactional_ids=tuple(transactional_ids)
    )
    for each in connection.send_request(request).transaction_states:
        if each.error_code is not ErrorCode.none:
            if each.error_code is not ErrorCode.transactional_id_not_found:
                on_undescribed(str(each.transactional_id), each.error_code.name.upper())
            continue
        yield DescribedTransactionState(
            str(each.transactional_id),
            int(each.producer_id),
            int(each.producer_epoch),
            each.transaction_state,
            each.transaction_timeout // timedelta(milliseconds=1),
            int(each.transaction_start_time),
            [
                Partition(str(topic.topic), int(number))
                for topic in each.topics
                for number in topic.partitions
            ],
        )


def abort_transaction(open_connection: OpenConnection, transactional_id: str) -> None:
    """Abort a transaction by a new epoch of its producer.

    Raises: ConnectionLost, AuthorizationError.
    """
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(
            bootstrap, transactional_id, key_type=_KEY_IS_TRANSACTIONAL_ID, operation="Write"
        )
    with closing(open_connection(address)) as connection:
        classes = load_request_classes(connection, _INIT_PRODUCER_ID_API_KEY, 4)
        request = build_entity(
            classes["InitProducerIdRequest"],
            transactional_id=transactional_id,
            transaction_timeout=_TIMEOUT,
            producer_id=_NO_PRODUCER,
            producer_epoch=_NO_PRODUCER,
        )
        code = connection.send_request(request).error_code
    if code not in _ABORTED:
        raise create_refusal(code, transactional_id)


def list_open_producers(
    open_connection: OpenConnection, partitions: Sequence[Partition]
) -> list[OpenProducer]:
    """Return the producers with an open transaction in each partition, by the partition's leader.

    Raises: ConnectionLost, AuthorizationError.
    """
    found: list[OpenProducer] = []
    for address, led in _group_by_leader(open_connection, partitions).items():
        with closing(open_connection(address)) as connection:
            found += _describe_producers(connection, led)
    return sorted(found)


def write_abort_marker(open_connection: OpenConnection, producer: OpenProducer) -> None:
    """Abort the transaction that a producer has open in one partition, by a marker in its log.

    Raises: ConnectionLost, AuthorizationError, StreamsError.
    """
    topic, number = producer.partition
    (address,) = _group_by_leader(open_connection, [producer.partition])
    with closing(open_connection(address)) as connection:
        classes = load_request_classes(connection, _WRITE_TXN_MARKERS_API_KEY, 1)
        topics = build_entity(
            classes["WritableTxnMarkerTopic"], name=topic, partition_indexes=(number,)
        )
        marker = build_entity(
            classes["WritableTxnMarker"],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=(topics,),
            # A partition that has never had a marker of this producer knows no epoch.
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )
        answer = connection.send_request(
            build_entity(classes["WriteTxnMarkersRequest"], markers=(marker,))
        )
    for each in answer.markers[0].topics:
        for part in each.partitions:
            check_authorized(part.error_code, "ClusterAction", "kafka-cluster")
            if part.error_code is not ErrorCode.none:
                refused = BrokerNotReady if part.error_code in _MOVED else StreamsError
                raise refused(
                    f"the transaction in {producer.partition} can't be aborted: "
                    f"{part.error_code.name}"
                )


def _describe_producers(
    connection: BrokerConnection, partitions: Sequence[Partition]
) -> Iterator[OpenProducer]:
    """Yield the producers with an open transaction in partitions that the broker leads."""
    classes = load_request_classes(connection, _DESCRIBE_PRODUCERS_API_KEY, 0)
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    topics = tuple(
        build_entity(classes["TopicRequest"], name=topic, partition_indexes=tuple(each))
        for topic, each in numbers.items()
    )
    answer = connection.send_request(
        build_entity(classes["DescribeProducersRequest"], topics=topics)
    )
    for topic in answer.topics:
        for part in topic.partitions:
            partition = Partition(str(topic.name), int(part.partition_index))
            check_authorized(part.error_code, "Read", partition.topic)
            if part.error_code is not ErrorCode.none:
                raise create_refusal(part.error_code, f"producers of {partition}")
            for each in part.active_producers:
                if each.current_txn_start_offset >= 0:
                    yield OpenProducer(
                        partition,
                        int(each.producer_id),
                        int(each.producer_epoch),
                        int(each.coordinator_epoch),
                        int(each.current_txn_start_offset),
                        int(each.last_timestamp),
                    )


def _group_by_leader(
    open_connection: OpenConnection, partitions: Sequence[Partition]
) -> dict[Address, list[Partition]]:
    """Return the partitions by the address of their leader. Raises ConnectionLost without one."""
    with closing(open_connection(None)) as bootstrap:
        answer = _fetch_ready_metadata(bootstrap, sorted({each.topic for each in partitions}))
    addresses = {int(each.node_id): (str(each.host), int(each.port)) for each in answer.brokers}
    leaders = {
        Partition(str(topic.name), int(part.partition_index)): int(part.leader_id)
        for topic in answer.topics
        for part in topic.partitions
    }
    led: dict[Address, list[Partition]] = {}
    for partition in partitions:
        address = addresses.get(leaders.get(partition, -1))
        if address is None:
            raise BrokerNotReady(f"{partition} has no leader at the moment")
        led.setdefault(address, []).append(partition)
    return led


def _fetch_ready_metadata(bootstrap: BrokerConnection, topics: Sequence[str]) -> Any:
    """Return the Metadata response with all brokers and these topics; it creates none.

    Raises ConnectionLost if it lists no brokers, as of a broker that is starting or was fenced:
    no transaction would be found, though there may be some.
    """
    classes = load_request_classes(bootstrap, _METADATA_API_KEY, 9)
    named = tuple(build_entity(classes["MetadataRequestTopic"], name=topic) for topic in topics)
    answer = bootstrap.send_request(
        build_entity(
            classes["MetadataRequest"],
            topics=named,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )
    if not answer.brokers:
        raise BrokerNotReady("the broker that answers lists no brokers: it is not ready")
    return answer
