"""DescribeProducers.

Behaviour: what each partition remembers of its producers: epoch, last sequence and time, the epoch
of the coordinator that wrote the last marker, and where an open transaction begins (-1: none). It
tells of hanging transactions, which an admin then ends with WriteTxnMarkers. The broker's own
topics may be asked for as well.
Versions: only v0.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.log.topics import Topic, partition_of

API_KEY = 61
VERSIONS = range(1)

_NO_TOPIC = "This server does not host this topic-partition."


def handle(request: Any, context: Context) -> Any:
    topics = context.broker.topics
    return context.reply(
        topics=[
            {
                "name": asked.name,
                "partitions": [
                    _described(topics.get(asked.name), index) for index in asked.partition_indexes
                ],
            }
            for asked in request.topics
        ]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every partition."""
    return context.reply(
        topics=[
            {
                "name": asked.name,
                "partitions": [_refused(index, code) for index in asked.partition_indexes],
            }
            for asked in request.topics
        ]
    )


def _described(topic: Topic | None, index: int) -> dict[str, Any]:
    partition = partition_of(topic, index)
    if partition is None:
        message = _NO_TOPIC if topic is None else None
        return _refused(index, Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    try:
        partition.check_open()
    except Refused as refused:
        return _refused(index, refused.code, refused.message)
    producers = [
        {
            "producer_id": producer_id,
            "producer_epoch": known.epoch,
            "last_sequence": known.batches[-1].last_sequence if known.batches else -1,
            "last_timestamp": known.last_timestamp_ms,
            "coordinator_epoch": known.coordinator_epoch,
            "current_txn_start_offset": first_offset,
        }
        for producer_id, known, first_offset in partition.producers.items()
    ]
    return {
        "partition_index": index,
        "error_code": Code.NONE,
        "error_message": None,
        "active_producers": producers,
    }


def _refused(index: int, code: Code, message: str | None = None) -> dict[str, Any]:
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": message,
        "active_producers": (),
    }
