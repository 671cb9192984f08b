"""WriteTxnMarkers.

Behaviour: writes markers for any producer id, which is how an admin ends a transaction that its
coordinator has forgotten. Our own coordinator doesn't need it: it writes its markers itself.
A partition of `__consumer_offsets` has its pending offsets committed or dropped before the answer.
Versions: v1 flexible.
Simplifications: not v2, which carries the transaction version that a stricter epoch check needs.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.shard.decision import TransactionEnded

API_KEY = 27
VERSIONS = range(1, 2)


def handle(request: Any, context: Context) -> Any:
    markers = []
    for marker in request.markers:
        ended = TransactionEnded(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
        )
        topics = [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": _write((topic.name, index), ended, context),
                    }
                    for index in topic.partition_indexes
                ],
            }
            for topic in marker.topics
        ]
        markers.append({"producer_id": marker.producer_id, "topics": topics})
    return context.reply(markers=markers)


def _write(partition: tuple[str, int], ended: TransactionEnded, context: Context) -> Code:
    try:
        context.broker.coordinators.write_marker(partition, ended)
    except Refused as refused:
        return refused.code
    return Code.NONE
