"""Fetch a producer's id and epoch from its transaction coordinator, or see what that refuses.

librdkafka has both and does not tell. Source: KIP-664 (DescribeTransactions).
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from streams.errors import AuthenticationError, OutcomeUnknown, StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    OpenConnection,
    build_entity,
    find_coordinator,
    load_request_classes,
)
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS
from streams.membership.response_schemas import DESCRIBE_TRANSACTIONS_API_KEY

_KEY_IS_TRANSACTIONAL_ID = 1


class UnknownTransactionalId(StreamsError):
    """Signals that a coordinator does not know a transactional id: TRANSACTIONAL_ID_NOT_FOUND.

    It never was given one, or nothing was committed for `transactional.id.expiration.ms`.
    """


class ProducerIdentity(NamedTuple):
    """Identifies a producer by the id and epoch that it writes into its batches."""

    producer_id: int
    producer_epoch: int


def fetch_producer_identity(
    open_connection: OpenConnection, transactional_id: str
) -> ProducerIdentity:
    """Return the id and epoch that the producer with a transactional id was given last.

    Raises: ConnectionLost where the coordinator is to be found again, UnknownTransactionalId,
    StreamsError for any other refusal.
    """
    with closing(_connect_to_coordinator(open_connection, transactional_id)) as connection:
        classes = load_request_classes(connection, DESCRIBE_TRANSACTIONS_API_KEY, 0)
        request = build_entity(
            classes["DescribeTransactionsRequest"], transactional_ids=(transactional_id,)
        )
        (transaction,) = connection.send_request(request).transaction_states
    action = f"the producer of transactional id {transactional_id!r} can't be told"
    check_authorized(transaction.error_code, "Write", transactional_id)
    if transaction.error_code in COORDINATOR_UNAVAILABLE_ERRORS:
        raise ConnectionLost(f"{action}: {transaction.error_code.name}")
    if transaction.error_code is ErrorCode.transactional_id_not_found:
        raise UnknownTransactionalId(f"{action}: {transaction.error_code.name}")
    if transaction.error_code is not ErrorCode.none:
        raise StreamsError(f"{action}: {transaction.error_code.name}")
    return ProducerIdentity(int(transaction.producer_id), int(transaction.producer_epoch))


def check_transaction_coordinator(open_connection: OpenConnection, transactional_id: str) -> None:
    """Raise an error if the coordinator of a transactional id refuses the connection.

    AuthenticationError for credentials or a certificate, AuthorizationError for a missing right,
    OutcomeUnknown for a refusal that may pass. A coordinator that doesn't answer is none: the
    producer waits for it.
    """
    try:
        _connect_to_coordinator(open_connection, transactional_id).close()
    except ConnectionLost as lost:
        if isinstance(lost.__cause__, AuthenticationError):
            raise OutcomeUnknown(
                f"the coordinator of transactional id {transactional_id!r}: {lost}"
            ) from lost


def _connect_to_coordinator(
    open_connection: OpenConnection, transactional_id: str
) -> BrokerConnection:
    """Find the coordinator of a transactional id and connect to it.

    Raises: ConnectionLost, AuthenticationError, AuthorizationError.
    """
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(
            bootstrap, transactional_id, key_type=_KEY_IS_TRANSACTIONAL_ID, operation="Write"
        )
    return open_connection(address)
