"""Handle DescribeProducers, which returns the producer state of partitions.

Behaviour: the state of each producer in a partition: epoch, last sequence and time, the epoch of
the coordinator that wrote the last marker, and where an open transaction begins (-1: none). It
shows hanging transactions, which an admin then ends with WriteTxnMarkers. Internal topics may be
requested too.
Versions: only v0.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.log.topics import BrokerTopic, partition_of

if TYPE_CHECKING:
    from kio.schema.describe_producers.v0.request import DescribeProducersRequest
    from kio.schema.describe_producers.v0.response import DescribeProducersResponse

API_KEY = 61
VERSIONS = range(1)

_NO_TOPIC = "This server does not host this topic-partition."


def handle_request(
    request: DescribeProducersRequest, context: RequestContext[DescribeProducersResponse]
) -> DescribeProducersResponse:
    topics = context.services.topics
    return context.build_response(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    _describe_partition(topics.get(topic.name), index)
                    for index in topic.partition_indexes
                ],
            }
            for topic in request.topics
        ]
    )


def build_error_response(
    request: DescribeProducersRequest,
    context: RequestContext[DescribeProducersResponse],
    code: Code,
) -> DescribeProducersResponse:
    """Return a response with `code` for every partition."""
    return context.build_response(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    _build_refused_partition(index, code) for index in topic.partition_indexes
                ],
            }
            for topic in request.topics
        ]
    )


def _describe_partition(topic: BrokerTopic | None, index: int) -> dict[str, Any]:
    partition = partition_of(topic, index)
    if partition is None:
        message = _NO_TOPIC if topic is None else None
        return _build_refused_partition(index, Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    try:
        partition.check_open()
    except Refused as refused:
        return _build_refused_partition(index, refused.code, refused.message)
    producers = [
        {
            "producer_id": producer_id,
            "producer_epoch": entry.epoch,
            "last_sequence": entry.batches[-1].last_sequence if entry.batches else -1,
            "last_timestamp": entry.last_timestamp_ms,
            "coordinator_epoch": entry.coordinator_epoch,
            "current_txn_start_offset": first_offset,
        }
        for producer_id, entry, first_offset in partition.producers.iterate_producers()
    ]
    return {
        "partition_index": index,
        "error_code": Code.NONE,
        "error_message": None,
        "active_producers": producers,
    }


def _build_refused_partition(index: int, code: Code, message: str | None = None) -> dict[str, Any]:
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": message,
        "active_producers": (),
    }
