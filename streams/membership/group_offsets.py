"""Commit a group's offsets outside a transaction, and fetch them, over a broker connection.

They are not fetched through confluent-kafka, which takes metadata for a C string: what a client
wrote without a closing NUL, as every client but librdkafka does, it returns with the memory that
follows (measured with 2.16; docs/decisions/0002). Source: KIP-447 (require stable).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from kio.schema.errors import ErrorCode

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import InputDeleted, StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    OpenConnection,
    build_entity,
    find_coordinator,
    load_request_classes,
)

OFFSET_COMMIT_API_KEY, OFFSET_FETCH_API_KEY = 8, 9
_NO_OFFSET = -1

COORDINATOR_UNAVAILABLE_ERRORS = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}
"""Errors after which the coordinator has to be found again: it is elsewhere or not ready."""
MEMBERSHIP_LOST_ERRORS = {
    ErrorCode.unknown_member_id,
    ErrorCode.illegal_generation,
    ErrorCode.fenced_instance_id,
}
"""Errors that mean that the group does not have this member any more."""


def try_commit_offsets(
    connection: BrokerConnection,
    group_id: str,
    generation: int,
    member_id: str,
    instance_id: str | None,
    offsets: Iterable[tuple[Partition, OffsetAndMetadata]],
) -> bool:
    """Commit offsets outside a transaction; return False if the member's generation is over.

    Raises: ConnectionLost where the coordinator is to be found again, StreamsError for a refusal.
    """
    classes = load_request_classes(connection, OFFSET_COMMIT_API_KEY, 9)
    topics: dict[str, list[object]] = {}
    for (topic, partition), (offset, metadata) in offsets:
        topics.setdefault(topic, []).append(
            build_entity(
                classes["OffsetCommitRequestPartition"],
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=metadata,
            )
        )
    entity = classes["OffsetCommitRequestTopic"]
    answer = connection.send_request(
        build_entity(
            classes["OffsetCommitRequest"],
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=tuple(
                build_entity(entity, name=n, partitions=tuple(p)) for n, p in topics.items()
            ),
        )
    )
    codes = set()
    for topic in answer.topics:
        for part in topic.partitions:
            is_group = part.error_code is ErrorCode.group_authorization_failed
            check_authorized(part.error_code, "Read", group_id if is_group else str(topic.name))
            codes.add(part.error_code)
    codes.discard(ErrorCode.none)
    if ErrorCode.stale_member_epoch in codes:  # the answer to a heartbeat was lost
        raise BrokerNotReady(f"offsets of group {group_id!r}: the member's epoch is outdated")
    if codes & (MEMBERSHIP_LOST_ERRORS | {ErrorCode.rebalance_in_progress}):
        return False
    if ErrorCode.unknown_topic_or_partition in codes:
        raise InputDeleted(
            f"an input is not on the brokers any more: its offset of group {group_id!r} can't be "
            "committed"
        )
    _raise_for_errors(codes, f"offsets of group {group_id!r} can't be committed")
    return True


def fetch_offsets(
    connection: BrokerConnection,
    group_id: str,
    partitions: Iterable[Partition] | None,
    *,
    operation: str = "Describe",
    require_stable: bool = True,
) -> CommittedOffsets:
    """Fetch a group's committed offsets, and the partitions whose offset is still pending.

    A partition without one is in neither part of the result. None for the partitions fetches all
    for which one is committed; what a transaction is about to commit for the first time is then not
    in `pending` either, as brokers don't tell it. Without `require_stable` none is pending: offsets
    are those before a transaction that is open. `operation`: as for `find_coordinator`.

    Raises: ConnectionLost where the coordinator is to be found again, StreamsError for a refusal.
    """
    classes = load_request_classes(connection, OFFSET_FETCH_API_KEY, 7)
    topics: dict[str, list[int]] = {}
    for topic, number in partitions or ():
        topics.setdefault(topic, []).append(number)
    entity = classes["OffsetFetchRequestTopic"]
    requested_topics = tuple(
        build_entity(entity, name=name, partition_indexes=tuple(numbers))
        for name, numbers in topics.items()
    )
    answer = connection.send_request(
        build_entity(
            classes["OffsetFetchRequest"],
            group_id=group_id,
            topics=None if partitions is None else requested_topics,
            require_stable=require_stable,
        )
    )
    action = f"offsets of group {group_id!r} can't be read"
    check_authorized(answer.error_code, operation, group_id)
    _raise_for_errors({answer.error_code} - {ErrorCode.none}, action)
    committed = CommittedOffsets({}, [])
    for each in answer.topics:
        for part in each.partitions:
            partition = Partition(str(each.name), int(part.partition_index))
            if part.error_code is ErrorCode.unstable_offset_commit:
                committed.pending.append(partition)
                continue
            check_authorized(part.error_code, "Read", partition.topic)
            _raise_for_errors({part.error_code} - {ErrorCode.none}, action)
            if part.committed_offset != _NO_OFFSET:
                # librdkafka, which commits in transactions, sends the closing NUL along.
                metadata = (part.metadata or "").removesuffix("\x00")
                committed.offsets[partition] = OffsetAndMetadata(
                    int(part.committed_offset), metadata
                )
    return committed


def fetch_group_offsets(
    open_connection: OpenConnection,
    group_id: str,
    partitions: Iterable[Partition] | None,
    *,
    require_stable: bool = True,
) -> CommittedOffsets:
    """Fetch any group's committed offsets over a new connection, as `fetch_offsets` does."""
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, group_id)
    with closing(open_connection(address)) as connection:
        return fetch_offsets(connection, group_id, partitions, require_stable=require_stable)


def check_groups_listed(open_connection: OpenConnection, group_ids: Iterable[str]) -> None:
    """Raise an error if brokers would leave groups of these names out of a list of groups.

    AuthorizationError for a missing right: FindCoordinator and ListGroups need Describe on the
    group alike. ConnectionLost also for COORDINATOR_NOT_AVAILABLE: no broker lists the groups of a
    coordinator that is away.
    """
    with closing(open_connection(None)) as bootstrap:
        for group_id in group_ids:
            find_coordinator(bootstrap, group_id)


def _raise_for_errors(codes: set[ErrorCode], action: str) -> None:
    """Raise ConnectionLost if the coordinator is unavailable, StreamsError for any other error."""
    if codes & COORDINATOR_UNAVAILABLE_ERRORS:
        raise BrokerNotReady(f"{action}: {', '.join(code.name for code in codes)}")
    if codes:
        raise StreamsError(f"{action}: {', '.join(code.name for code in codes)}")
