"""Handle AddOffsetsToTxn, which adds a group's offsets to a transaction.

Behaviour: registers the partition of `__consumer_offsets` that a group's offsets are kept in.
Versions: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE, never the answer here.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_fenced_code
from coordinator.coordinators import GROUP_TOPIC
from coordinator.errors import Code
from coordinator.transactions.add_partitions import AddPartitionsCommand

if TYPE_CHECKING:
    from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
    from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse

API_KEY = 25
VERSIONS = range(5)


def handle_request(
    request: AddOffsetsToTxnRequest, context: RequestContext[AddOffsetsToTxnResponse]
) -> AddOffsetsToTxnResponse:
    coordinators = context.services.coordinators
    partition = (GROUP_TOPIC, coordinators.groups.partition_of(request.group_id))
    coordinators.transactions.add_partitions(
        AddPartitionsCommand(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset((partition,)),
        )
    )
    return context.build_response()


def build_error_response(
    request: AddOffsetsToTxnRequest, context: RequestContext[AddOffsetsToTxnResponse], code: Code
) -> AddOffsetsToTxnResponse:
    return context.build_response(
        error_code=translate_fenced_code(code, context.version, fenced_since=2)
    )
