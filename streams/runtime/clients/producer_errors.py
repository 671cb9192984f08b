"""Translate what a producer raises or reports to the error that selects the recovery."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from streams.errors import AuthorizationError
from streams.runtime.clients.errors import (
    check_authorized,
    find_write_refusal,
    translate_client_error,
)


def translate_transaction_error(error: KafkaException, action: str) -> Exception:
    """Translate the error of a transaction: WriteRefused if it has failed with a record."""
    cause: KafkaError = error.args[0]
    refusal = find_write_refusal(cause, action)
    if refusal is not None and cause.txn_requires_abort():
        return refusal
    return translate_client_error(error, action)


def translate_produce_error(error: Exception, action: str, topic: str) -> Exception | None:
    """Return the recovery error for what `produce` raised; None if it is no client's error.

    For callers of `produce` alone: it has no wrapper, which would cost each record, and a producer
    that was fenced or timed out meanwhile refuses there. Anywhere else a client's error is of a
    user's own client.
    """
    if not isinstance(error, KafkaException):
        return None
    try:
        check_authorized(error.args[0], "Write", topic)
    except AuthorizationError as refusal:
        return refusal
    return translate_client_error(error, action)


def translate_delivery_error(error: KafkaError, action: str, topic: str) -> Exception:
    """Return the recovery error for the error in a delivery report."""
    return translate_produce_error(KafkaException(error), action, topic) or KafkaException(error)
