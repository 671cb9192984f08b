"""EndTxn.

Behaviour: commits or aborts. Answered when the outcome is in the log and, unless a log can't be
written to just then, when all markers are written and offsets are visible.
Versions: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE, never the answer here.
Simplifications: not v5, with which every end bumps the epoch (transactions v2).
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import fenced_code
from coordinator.errors import Code
from coordinator.transactions.end_transaction import EndTransaction

API_KEY = 26
VERSIONS = range(5)


def handle(request: Any, context: Context) -> Any:
    context.broker.coordinators.transactions.end_transaction(
        EndTransaction(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
        )
    )
    return context.reply()


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=fenced_code(code, context.version, fenced_since=2))
