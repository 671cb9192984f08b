"""Handle ListOffsets, which finds offsets by timestamp, or the ends of the log.

Behaviour: a timestamp finds the first record that isn't earlier, -3 the first record with the
largest timestamp; a record at or above the end for that isolation doesn't count, and offset -1
means that none was found. -1 is the end (the last stable offset for read_committed), -2 the start.
A partition that is named twice in a request is refused.
Versions: 1-11; 2 isolation (KIP-98), 4 leader epochs (KIP-320), 7 the largest timestamp (KIP-734),
8, 9 and 11 the bounds of tiered storage (-4, -5, -6), 10 the time-out.
Simplifications: there is no tiered storage: -4 is the start, -5 and -6 find nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.leader_epoch import LEADER_EPOCH, check_leader_epoch
from coordinator.errors import Code, Refused
from coordinator.log.partition import PartitionLog
from coordinator.log.timestamp_lookup import OffsetAndTimestamp

if TYPE_CHECKING:
    from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest
    from kio.schema.list_offsets.v11.response import ListOffsetsResponse

API_KEY = 2
VERSIONS = range(1, 12)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
_READ_COMMITTED = 1
# The version that each kind of look-up came with.
_SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}


def handle_request(
    request: ListOffsetsRequest, context: RequestContext[ListOffsetsResponse]
) -> ListOffsetsResponse:
    times_named: Counter[tuple[str, int]] = Counter(
        (topic.name, p.partition_index) for topic in request.topics for p in topic.partitions
    )
    committed = getattr(request, "isolation_level", 0) == _READ_COMMITTED

    def answer_partition(topic: str, requested: ListOffsetsPartition) -> dict[str, Any]:
        if times_named[topic, requested.partition_index] > 1:
            return _build_failed_partition(requested, Code.INVALID_REQUEST)
        try:
            return _list_offset(topic, requested, committed, context)
        except Refused as refused:
            return _build_failed_partition(requested, refused.code)

    return _build_response(request, context, answer_partition)


def build_error_response(
    request: ListOffsetsRequest, context: RequestContext[ListOffsetsResponse], code: Code
) -> ListOffsetsResponse:
    """Return a response with `code` for every partition."""
    return _build_response(
        request, context, lambda topic, requested: _build_failed_partition(requested, code)
    )


def _build_response(
    request: ListOffsetsRequest,
    context: RequestContext[ListOffsetsResponse],
    answer_partition: Callable[[str, ListOffsetsPartition], dict[str, Any]],
) -> ListOffsetsResponse:
    return context.build_response(
        topics=[
            {
                "name": topic.name,
                "partitions": [answer_partition(topic.name, p) for p in topic.partitions],
            }
            for topic in request.topics
        ]
    )


def _list_offset(
    topic: str, requested: ListOffsetsPartition, read_committed: bool, context: RequestContext
) -> dict[str, Any]:
    """Find the offset that a partition of the request asks for and return its result.

    Raises: Refused, UNSUPPORTED_VERSION, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, or as
    `check_leader_epoch`.
    """
    if requested.timestamp < 0 and context.version < _SINCE.get(requested.timestamp, 1_000):
        raise Refused(Code.UNSUPPORTED_VERSION, f"timestamp {requested.timestamp}")
    partition = context.services.topics.find_partition(topic, requested.partition_index)
    if partition is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{requested.partition_index}")
    partition.check_open()
    check_leader_epoch(getattr(requested, "current_leader_epoch", -1))
    found = _find_offset_for_timestamp(partition, requested.timestamp, read_committed)
    if found is None:
        return {"partition_index": requested.partition_index}
    offset, timestamp_ms = found
    return {
        "partition_index": requested.partition_index,
        "offset": offset,
        "timestamp": timestamp_ms,
        "leader_epoch": LEADER_EPOCH,
    }


def _find_offset_for_timestamp(
    partition: PartitionLog, timestamp_ms: int, read_committed: bool
) -> OffsetAndTimestamp | None:
    """Return the offset and timestamp found for a timestamp or special value, or None.

    The ends of the log have timestamp -1.
    """
    end = partition.last_stable_offset if read_committed else partition.end_offset
    match timestamp_ms:
        case -1:
            return OffsetAndTimestamp(end, -1)
        case -2 | -4:
            return OffsetAndTimestamp(partition.start_offset, -1)
        case -3:
            newest = partition.timestamps.find_max_timestamp(partition.start_offset)
            return newest if newest is not None and newest.offset < end else None
    if timestamp_ms < 0:
        return None
    return partition.timestamps.find_offset(timestamp_ms, partition.start_offset, end)


def _build_failed_partition(requested: ListOffsetsPartition, code: Code) -> dict[str, Any]:
    return {"partition_index": requested.partition_index, "error_code": code}
