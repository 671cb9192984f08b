"""Handle OffsetForLeaderEpoch, which returns the end offset of a leader epoch.

A consumer whose leader has changed asks for it, as it may have read what is no longer in the log.

Behaviour: there is one leader, with epoch 0. It ends where the log ends; later epochs are unknown
(-1, -1); an earlier one ended where epoch 0 begins.
Versions: 2-4; 2 checks the current leader's epoch (KIP-320), 3 the replica's id, 4 flexible.
Source: KIP-101, KIP-320; org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.leader_epoch import (
    LEADER_EPOCH,
    UNKNOWN_EPOCH,
    check_leader_epoch,
    end_offset_of_epoch,
)
from coordinator.errors import Code, Refused

if TYPE_CHECKING:
    from kio.schema.offset_for_leader_epoch.v4.request import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
    )
    from kio.schema.offset_for_leader_epoch.v4.response import OffsetForLeaderEpochResponse

API_KEY = 23
VERSIONS = range(2, 5)


def handle_request(
    request: OffsetForLeaderEpochRequest, context: RequestContext[OffsetForLeaderEpochResponse]
) -> OffsetForLeaderEpochResponse:
    return _build_response(
        request, context, lambda topic, requested: _find_epoch_end(topic, requested, context)
    )


def build_error_response(
    request: OffsetForLeaderEpochRequest,
    context: RequestContext[OffsetForLeaderEpochResponse],
    code: Code,
) -> OffsetForLeaderEpochResponse:
    """Return a response with `code` for every partition."""
    return _build_response(request, context, lambda topic, requested: {"error_code": code})


def _build_response(
    request: OffsetForLeaderEpochRequest,
    context: RequestContext[OffsetForLeaderEpochResponse],
    answer_partition: Callable[[str, OffsetForLeaderPartition], dict[str, Any]],
) -> OffsetForLeaderEpochResponse:
    return context.build_response(
        topics=[
            {
                "topic": topic.topic,
                "partitions": [
                    {"partition": partition.partition, **answer_partition(topic.topic, partition)}
                    for partition in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )


def _find_epoch_end(
    topic: str, requested: OffsetForLeaderPartition, context: RequestContext
) -> dict[str, Any]:
    partition = context.services.topics.find_partition(topic, requested.partition)
    if partition is None:
        return {"error_code": Code.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        partition.check_open()
        check_leader_epoch(requested.current_leader_epoch)
    except Refused as refused:
        return {"error_code": refused.code}
    epoch = requested.leader_epoch
    end_offset = end_offset_of_epoch(partition, epoch)
    if epoch < LEADER_EPOCH and epoch != UNKNOWN_EPOCH:
        end_offset = partition.start_offset
    if end_offset is None:
        return {}
    return {"leader_epoch": epoch, "end_offset": end_offset}
