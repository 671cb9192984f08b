"""Handle WriteTxnMarkers, which ends transactions of any producer id in partitions.

Behaviour: writes markers for any producer id, with which an admin ends a transaction that its
coordinator no longer knows. Our own coordinator doesn't use it: it writes its markers directly.
A partition of `__consumer_offsets` has its pending offsets committed or dropped before the answer.
Versions: v1 flexible; v2 the transaction's version, which from 2 on makes the check of the epoch
strict (`log/producers`).
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.state import TopicPartition

if TYPE_CHECKING:
    from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WriteTxnMarkersRequest
    from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse

API_KEY = 27
VERSIONS = range(1, 3)


def handle_request(
    request: WriteTxnMarkersRequest, context: RequestContext[WriteTxnMarkersResponse]
) -> WriteTxnMarkersResponse:
    def write_marker(marker: WritableTxnMarker, partition: TopicPartition) -> Code:
        ended = TransactionEnded(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            getattr(marker, "transaction_version", 0),
        )
        return _try_write_marker(partition, ended, context)

    return _build_response(request, context, write_marker)


def build_error_response(
    request: WriteTxnMarkersRequest, context: RequestContext[WriteTxnMarkersResponse], code: Code
) -> WriteTxnMarkersResponse:
    """Return a response with `code` for every partition of every marker."""
    return _build_response(request, context, lambda marker, partition: code)


def _try_write_marker(
    partition: TopicPartition, ended: TransactionEnded, context: RequestContext
) -> Code:
    try:
        context.services.coordinators.write_marker(partition, ended)
    except Refused as refused:
        return refused.code
    return Code.NONE


def _build_response(
    request: WriteTxnMarkersRequest,
    context: RequestContext[WriteTxnMarkersResponse],
    code_of: Callable[[WritableTxnMarker, TopicPartition], Code],
) -> WriteTxnMarkersResponse:
    """Build the response, calling `code_of` for every partition of every marker, in order."""
    return context.build_response(
        markers=[
            {
                "producer_id": marker.producer_id,
                "topics": [
                    {
                        "name": topic.name,
                        "partitions": [
                            {
                                "partition_index": index,
                                "error_code": code_of(marker, (topic.name, index)),
                            }
                            for index in topic.partition_indexes
                        ],
                    }
                    for topic in marker.topics
                ],
            }
            for marker in request.markers
        ]
    )
