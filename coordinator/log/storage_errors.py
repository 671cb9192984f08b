"""Refuse appends and reads of one log that its files made fail, and log why.

Kafka: `LogDirFailureChannel`, which takes a whole log directory offline at the first such error.
"""

from __future__ import annotations

import logging
from math import inf
from pathlib import Path

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.log.segment import CorruptBatch

logger = logging.getLogger(__name__)

_LOG_INTERVAL_MS = 10_000


class StorageErrorLog:
    """Logs the failed operations of one log, at most every ten seconds, as clients retry at once.

    A damaged batch that a reader came to is always logged: a person is to repair it.
    """

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._log_again_at_ms = -inf

    def log_and_create_append_refusal(self, error: CorruptBatch | OSError) -> Refused:
        """Log why an append failed, and return its refusal: KAFKA_STORAGE_ERROR."""
        return self._log_and_create_refusal("an append", error)

    def log_and_create_read_refusal(self, error: CorruptBatch | OSError) -> Refused:
        """Log why a read failed, and return its refusal: CORRUPT_MESSAGE or KAFKA_STORAGE_ERROR."""
        if isinstance(error, CorruptBatch):
            logger.error("%s", error)
            return Refused(Code.CORRUPT_MESSAGE, str(error))
        return self._log_and_create_refusal("a read", error)

    def _log_and_create_refusal(self, operation: str, error: CorruptBatch | OSError) -> Refused:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._log_again_at_ms:
            self._log_again_at_ms = now_ms + _LOG_INTERVAL_MS
            logger.error("%s: %s has failed: %s", self._directory, operation, error)
        return Refused(Code.KAFKA_STORAGE_ERROR, f"{self._directory}: {error}")
