"""Handles SaslAuthenticate, which is refused: the listener requires no authentication.

Behaviour: ILLEGAL_SASL_STATE, as on a PLAINTEXT listener of Kafka
(KafkaApis.handleSaslAuthenticateRequest).
Versions: 0-2; 1 the session's lifetime (KIP-368), 2 flexible.
Simplifications: none, for there is no authentication.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 36
VERSIONS = range(3)

_MESSAGE = "SaslAuthenticate request received after successful authentication"


def handle_request(request: Any, context: RequestContext) -> Any:
    return build_error_response(request, context, Code.ILLEGAL_SASL_STATE)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, error_message=_MESSAGE, auth_bytes=b"")
