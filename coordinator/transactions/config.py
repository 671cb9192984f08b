"""Define the settings of the transaction coordinator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Holds Kafka's settings of the transaction coordinator, in milliseconds.

    `abort_retry_ms`: between attempts to abort a transaction that has timed out.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    expiry_check_ms: int = 3_600_000
    abort_retry_ms: int = 10_000
