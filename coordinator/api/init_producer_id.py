"""Handle InitProducerId, which allocates a producer id and epoch.

Behaviour: returns a producer id and epoch; for a transactional id with a higher epoch, which fences
the producer before, after its transaction is aborted and all markers are written. A producer sends
both its id and its epoch, or neither; else INVALID_REQUEST.
Versions: v2 flexible; v3 KIP-360 (the producer says what it has); v4 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH; v5 TRANSACTION_ABORTABLE, which is never the answer here.
Simplifications: no two-phase commit (v6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_fenced_code
from coordinator.errors import Code, Refused
from coordinator.wire.codec import to_ms

if TYPE_CHECKING:
    from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
    from kio.schema.init_producer_id.v5.response import InitProducerIdResponse

API_KEY = 22
VERSIONS = range(6)


def handle_request(
    request: InitProducerIdRequest, context: RequestContext[InitProducerIdResponse]
) -> InitProducerIdResponse:
    producer_id = getattr(request, "producer_id", -1)
    producer_epoch = getattr(request, "producer_epoch", -1)
    if (producer_id == -1) != (producer_epoch == -1):
        raise Refused(
            Code.INVALID_REQUEST, f"producer id {producer_id} with epoch {producer_epoch}"
        )
    owner = context.services.coordinators.transactions.init_producer_id(
        request.transactional_id,
        to_ms(request.transaction_timeout),
        producer_id,
        producer_epoch,
    )
    return context.build_response(
        producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )


def build_error_response(
    request: InitProducerIdRequest, context: RequestContext[InitProducerIdResponse], code: Code
) -> InitProducerIdResponse:
    return context.build_response(
        error_code=translate_fenced_code(code, context.version, fenced_since=4),
        producer_id=-1,
        producer_epoch=-1,
    )
