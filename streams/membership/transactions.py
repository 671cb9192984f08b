"""Fetch a producer's id and epoch from its transaction coordinator.

librdkafka has them and does not tell. Source: KIP-664 (DescribeTransactions).
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.answers import DESCRIBE_TRANSACTIONS
from streams.membership.connection import ConnectionLost, Dial, build, coordinator_of, schema
from streams.membership.offsets import AWAY

_KEY_IS_TRANSACTIONAL_ID = 1


class Identity(NamedTuple):
    """Identifies a producer by the id and epoch that it writes into its batches."""

    producer_id: int
    producer_epoch: int


def identity_of(dial: Dial, transactional_id: str) -> Identity:
    """Return the id and epoch that the producer with a transactional id was given last.

    Raises: ConnectionLost where the coordinator is to be found again, StreamsError for a refusal.
    """
    with closing(dial(None)) as bootstrap:
        address = coordinator_of(bootstrap, transactional_id, key_type=_KEY_IS_TRANSACTIONAL_ID)
    with closing(dial(address)) as connection:
        classes = schema(connection, DESCRIBE_TRANSACTIONS, 0)
        request = build(
            classes["DescribeTransactionsRequest"], transactional_ids=(transactional_id,)
        )
        (transaction,) = connection.request(request).transaction_states
    action = f"the producer of transactional id {transactional_id!r} can't be told"
    if transaction.error_code in AWAY:
        raise ConnectionLost(f"{action}: {transaction.error_code.name}")
    if transaction.error_code is not ErrorCode.none:
        raise StreamsError(f"{action}: {transaction.error_code.name}")
    return Identity(int(transaction.producer_id), int(transaction.producer_epoch))
