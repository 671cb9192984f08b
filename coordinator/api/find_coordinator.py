"""Handle FindCoordinator, which returns this broker for every key.

Behaviour: this broker coordinates every group (key type 0), every transactional id (1), and every
partition that a share group reads (2), whose key is `group:topic id:partition`.
Versions: v1 key types; v3 flexible; v4 several keys in a request (KIP-699); v5
TRANSACTION_ABORTABLE, never the answer here; v6 share groups (KIP-932), before that refused.
Simplifications: one broker. Share groups are not supported: their APIs are not advertised.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

if TYPE_CHECKING:
    from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
    from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

API_KEY = 10
VERSIONS = range(7)

GROUP, TRANSACTION, SHARE = 0, 1, 2

_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_TOPIC_ID_LENGTH_MAX = 24


def handle_request(
    request: FindCoordinatorRequest, context: RequestContext[FindCoordinatorResponse]
) -> FindCoordinatorResponse:
    key_type = getattr(request, "key_type", GROUP)
    if key_type not in (GROUP, TRANSACTION, SHARE):
        return _build_response(
            request, context, _build_missing_coordinator(Code.INVALID_REQUEST, _MALFORMED)
        )
    if context.version >= 4:
        coordinators = [
            {"key": key, **_find_coordinator(key_type, key, context)}
            for key in request.coordinator_keys
        ]
        return context.build_response(coordinators=coordinators)
    if key_type == SHARE:
        return context.build_response(
            **_build_missing_coordinator(Code.INVALID_REQUEST, _MALFORMED)
        )
    coordinator = _find_coordinator(key_type, request.key, context)  # type: ignore[attr-defined]  # up to version 3
    return context.build_response(**coordinator | {"error_message": Code.NONE.name})


def build_error_response(
    request: FindCoordinatorRequest, context: RequestContext[FindCoordinatorResponse], code: Code
) -> FindCoordinatorResponse:
    """Return a response with `code` for every key."""
    return _build_response(request, context, _build_missing_coordinator(code, None))


def _find_coordinator(key_type: int, key: str, context: RequestContext) -> dict[str, Any]:
    if key_type == SHARE:
        try:
            _check_share_key(key, context.version)
        except Refused as refused:
            return _build_missing_coordinator(refused.code, "")
    return {**context.services.endpoint, "error_code": Code.NONE, "error_message": ""}


def _check_share_key(key: str, version: int) -> None:
    """Raise Refused(INVALID_REQUEST) unless the key is `group:topic id:partition`.

    Source: org.apache.kafka.server.share.SharePartitionKey.
    """
    if version < 6:
        raise Refused(Code.INVALID_REQUEST, "share groups are asked for from version 6 on")
    group, topic, partition = ["", "", *key.rsplit(":", 2)][-3:]
    try:
        is_topic_id = len(base64.urlsafe_b64decode(topic + "=" * (-len(topic) % 4))) == 16
        int(partition)
    except (binascii.Error, ValueError):
        is_topic_id = False
    if not group.strip() or len(topic) > _TOPIC_ID_LENGTH_MAX or not is_topic_id:
        raise Refused(Code.INVALID_REQUEST, f"{key!r} is not group:topic id:partition")


def _build_response(
    request: FindCoordinatorRequest,
    context: RequestContext[FindCoordinatorResponse],
    coordinator: dict[str, Any],
) -> FindCoordinatorResponse:
    """Return a response with the same coordinator fields for every key.

    Before version 4 there is only one key.
    """
    if context.version < 4:
        return context.build_response(**coordinator)
    return context.build_response(
        coordinators=[{"key": key, **coordinator} for key in request.coordinator_keys]
    )


def _build_missing_coordinator(code: Code, message: str | None) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
