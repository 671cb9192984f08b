"""Handles SaslHandshake, which is refused: the listener requires no authentication.

Behaviour: the connection is past that already, so ILLEGAL_SASL_STATE, as on a PLAINTEXT listener of
Kafka (KafkaApis.handleSaslHandshakeRequest).
Versions: 0-1; 1 has SaslAuthenticate follow it (KIP-152).
Simplifications: none, for there is no authentication.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 17
VERSIONS = range(2)


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.ILLEGAL_SASL_STATE)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, mechanisms=())
