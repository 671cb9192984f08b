"""InitProducerId.

Behaviour: a producer id and epoch; for a transactional id its next owner's, after the transaction
of the owner before is aborted and all its markers are written.
Versions: v2 flexible; v3 KIP-360 (the producer says what it has); v4 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH; v5 TRANSACTION_ABORTABLE, which is never the answer here.
Simplifications: no two-phase commit (v6).
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import fenced_code
from coordinator.errors import Code
from coordinator.wire.codec import to_ms

API_KEY = 22
VERSIONS = range(6)


def handle(request: Any, context: Context) -> Any:
    owner = context.broker.coordinators.transactions.init_producer_id(
        request.transactional_id,
        to_ms(request.transaction_timeout),
        getattr(request, "producer_id", -1),
        getattr(request, "producer_epoch", -1),
    )
    return context.reply(producer_id=owner.producer_id, producer_epoch=owner.producer_epoch)


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(
        error_code=fenced_code(code, context.version, fenced_since=4),
        producer_id=-1,
        producer_epoch=-1,
    )
