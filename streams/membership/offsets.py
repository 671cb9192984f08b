"""Commit a group's offsets outside a transaction, and fetch them, over a broker connection.

They are not fetched through confluent-kafka, which takes metadata for a C string: what a client
wrote without a closing NUL, as every client but librdkafka does, it returns with the memory that
follows (measured with 2.16; docs/decisions/0002). Source: KIP-447 (require stable).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.connection import (
    Connection,
    ConnectionLost,
    Dial,
    build,
    coordinator_of,
    schema,
)
from streams.positions import Committed, CommittedOffsets, Partition

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
_NO_OFFSET = -1

AWAY = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}
"""Errors after which the coordinator has to be found again: it is elsewhere or not ready."""
LOST = {
    ErrorCode.unknown_member_id,
    ErrorCode.illegal_generation,
    ErrorCode.fenced_instance_id,
}
"""Errors that mean that the group does not have this member any more."""


def commit_offsets(
    connection: Connection,
    group: str,
    generation: int,
    member_id: str,
    instance_id: str,
    offsets: Iterable[tuple[Partition, Committed]],
) -> bool:
    """Commit offsets as a member, outside a transaction; return False if the group has moved on.

    Raises: ConnectionLost where the coordinator is to be found again, StreamsError for a refusal.
    """
    classes = schema(connection, OFFSET_COMMIT, 9)
    topics: dict[str, list[object]] = {}
    for (topic, partition), (offset, metadata) in offsets:
        topics.setdefault(topic, []).append(
            build(
                classes["OffsetCommitRequestPartition"],
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=metadata,
            )
        )
    entity = classes["OffsetCommitRequestTopic"]
    answer = connection.request(
        build(
            classes["OffsetCommitRequest"],
            group_id=group,
            generation_id_or_member_epoch=generation,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=tuple(build(entity, name=n, partitions=tuple(p)) for n, p in topics.items()),
        )
    )
    codes = {part.error_code for topic in answer.topics for part in topic.partitions}
    codes.discard(ErrorCode.none)
    if codes & (LOST | {ErrorCode.rebalance_in_progress}):
        return False
    _check(codes, f"offsets of group {group!r} can't be committed")
    return True


def fetch_offsets(
    connection: Connection, group: str, partitions: Iterable[Partition] | None
) -> CommittedOffsets:
    """Fetch the stable committed offsets of a group.

    A partition without one is in neither part of the result. None for the partitions fetches all
    for which one is committed; what a transaction is about to commit for the first time is then not
    in `pending` either, as brokers don't tell it.

    Raises: ConnectionLost where the coordinator is to be found again, StreamsError for a refusal.
    """
    classes = schema(connection, OFFSET_FETCH, 7)
    topics: dict[str, list[int]] = {}
    for topic, number in partitions or ():
        topics.setdefault(topic, []).append(number)
    entity = classes["OffsetFetchRequestTopic"]
    requested_topics = tuple(
        build(entity, name=name, partition_indexes=tuple(numbers))
        for name, numbers in topics.items()
    )
    answer = connection.request(
        build(
            classes["OffsetFetchRequest"],
            group_id=group,
            topics=None if partitions is None else requested_topics,
            require_stable=True,
        )
    )
    action = f"offsets of group {group!r} can't be read"
    _check({answer.error_code} - {ErrorCode.none}, action)
    committed = CommittedOffsets({}, [])
    for each in answer.topics:
        for part in each.partitions:
            partition = Partition(str(each.name), int(part.partition_index))
            if part.error_code is ErrorCode.unstable_offset_commit:
                committed.pending.append(partition)
                continue
            _check({part.error_code} - {ErrorCode.none}, action)
            if part.committed_offset != _NO_OFFSET:
                # librdkafka, which commits in transactions, sends the closing NUL along.
                metadata = (part.metadata or "").removesuffix("\x00")
                committed.offsets[partition] = Committed(int(part.committed_offset), metadata)
    return committed


def offsets_of_group(dial: Dial, group: str, partitions: Iterable[Partition]) -> CommittedOffsets:
    """Fetch the stable committed offsets of any group, over a connection of its own."""
    with closing(dial(None)) as bootstrap:
        address = coordinator_of(bootstrap, group)
    with closing(dial(address)) as connection:
        return fetch_offsets(connection, group, partitions)


def _check(codes: set[ErrorCode], doing: str) -> None:
    """Raise ConnectionLost if the coordinator is unavailable, StreamsError for any other error."""
    if codes & AWAY:
        raise ConnectionLost(f"{doing}: {', '.join(code.name for code in codes)}")
    if codes:
        raise StreamsError(f"{doing}: {', '.join(code.name for code in codes)}")
