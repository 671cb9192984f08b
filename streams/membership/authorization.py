"""Translate the error codes with which brokers refuse a right, over our own connection."""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from streams.errors import AuthorizationError

REFUSED_RESOURCES: Mapping[int, str] = {
    ErrorCode.topic_authorization_failed: "topic",
    ErrorCode.group_authorization_failed: "group",
    ErrorCode.transactional_id_authorization_failed: "transactional id",
}
"""The kind of resource that a code is about, in the words of AuthorizationError."""


def check_authorized(code: ErrorCode, operation: str, name: str) -> None:
    """Raise AuthorizationError if `code` says that the right to an operation is missing.

    `name` is that of the topic, the group or the transactional id that the code is about.
    """
    if code in REFUSED_RESOURCES:
        raise AuthorizationError(operation, REFUSED_RESOURCES[code], name)
