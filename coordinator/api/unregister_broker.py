"""Handles UnregisterBroker, which never unregisters one: this broker is the only one (KIP-500).

Behaviour: BROKER_ID_NOT_REGISTERED for any other broker; INVALID_REQUEST for this one, which can't
be unregistered while it runs.
Versions: 0.
Simplifications: Kafka unregisters a running broker, which then registers again.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 64
VERSIONS = range(1)


def handle_request(request: Any, context: RequestContext) -> Any:
    if request.broker_id == context.services.config.node_id:
        message = f"Broker ID {request.broker_id} is this broker, the only one"
        return context.build_response(error_code=Code.INVALID_REQUEST, error_message=message)
    message = f"Broker ID {request.broker_id} is not currently registered"
    return context.build_response(error_code=Code.BROKER_ID_NOT_REGISTERED, error_message=message)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, error_message=None)
