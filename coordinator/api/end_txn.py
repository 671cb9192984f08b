"""Handle EndTxn, which commits or aborts a transaction.

Behaviour: commits or aborts. The response is sent when the outcome is in the log; the markers are
written next, before a request of anybody who has seen the response is read.
Versions: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE, never the answer here; v5 is
transactions v2: the end bumps the epoch and the answer says what the producer goes on with.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_fenced_code
from coordinator.errors import Code
from coordinator.transactions.end_transaction import EndTransactionCommand
from coordinator.transactions.state import V0, V2

if TYPE_CHECKING:
    from kio.schema.end_txn.v5.request import EndTxnRequest
    from kio.schema.end_txn.v5.response import EndTxnResponse

API_KEY = 26
VERSIONS = range(6)


def handle_request(
    request: EndTxnRequest, context: RequestContext[EndTxnResponse]
) -> EndTxnResponse:
    owner = context.services.coordinators.transactions.end_transaction(
        EndTransactionCommand(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            version=V2 if context.version >= 5 else V0,
        )
    )
    return context.build_response(
        producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )


def build_error_response(
    request: EndTxnRequest, context: RequestContext[EndTxnResponse], code: Code
) -> EndTxnResponse:
    return context.build_response(
        error_code=translate_fenced_code(code, context.version, fenced_since=2)
    )
