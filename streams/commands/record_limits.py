"""Refuse records that the settings of their topic exclude, before they are sent, and say why.

A producer sends records in batches, and a broker that refuses one of them refuses its batch. A
record that is known to be refused is named before anything after it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.commands.offset_positions import current_time_ms
from streams.commands.record_encoding import EncodedRecord
from streams.commands.records import format_time
from streams.errors import ConfigError
from streams.runtime.clients.errors import explain_refusal
from streams.runtime.clients.topic_limits import TopicLimits

_BATCH_BYTES = 61
"""The bytes of a batch before its first record."""
_RECORD_BYTES = 3
"""The attributes of a record, and its differences of time and offset, in a batch of its own."""
_EARLIEST_DEFAULT_MS, _LATEST_DEFAULT_MS = (1 << 63) - 1, 3_600_000
"""Kafka's defaults of message.timestamp.before.max.ms and message.timestamp.after.max.ms."""


class RecordLimits:
    """Knows what the settings of a topic exclude; nothing if `limits` is None.

    `fields` is what all records have, as arguments of the producer.
    """

    def __init__(self, topic: str, limits: TopicLimits | None, fields: dict[str, Any]) -> None:
        self._topic = topic
        self._limits = limits or TopicLimits()
        self._headers: Sequence[tuple[str, Any]] = fields.get("headers") or ()
        self._timestamp_ms: int = fields.get("timestamp", 0)

    def check_record(self, record: EncodedRecord) -> None:
        """Raise ConfigError, with place and reason, for a record that brokers are to refuse."""
        time_ms = record.timestamp_ms or self._timestamp_ms
        error = self._limits.find_refusal(record.key, record.value, time_ms, current_time_ms())
        if error is not None:
            raise ConfigError(f"{record.place}: {self.explain_refused(error, record)}")
        bytes_max = self._limits.bytes_max
        if bytes_max is not None and self._count_bytes(record) > bytes_max:
            raise ConfigError(f"{record.place}: {self._explain_size(record)}")

    def explain_refused(self, error: Any, record: EncodedRecord) -> str:
        """Return why brokers refuse a record: what of it, by which setting, and what to do."""
        name = error.name()
        if name == "INVALID_RECORD" and record.key is None and self._limits.is_compacted:
            return (
                f"it has no key, which topic {self._topic!r} needs, since it is compacted "
                "(cleanup.policy): give --key, or a key in each line with --key-separator"
            )
        if name in ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"):
            return self._explain_size(record)
        time_ms = record.timestamp_ms or self._timestamp_ms
        if name in ("INVALID_TIMESTAMP", "INVALID_RECORD") and time_ms:
            return self._explain_time(error, record, time_ms)
        return explain_refusal(error, record.key, record.value, time_ms)

    def _explain_size(self, record: EncodedRecord) -> str:
        largest = self._limits.batch_bytes_max
        known = "" if largest is None else f"={largest}"
        return (
            f"it has {self._count_bytes(record)} bytes with its headers and its batch, more than "
            f"topic {self._topic!r} takes (max.message.bytes{known}): write a shorter one, or "
            "give the topic a larger limit"
        )

    def _explain_time(self, error: Any, record: EncodedRecord, time_ms: int) -> str:
        ahead_ms = time_ms - current_time_ms()
        if ahead_ms > 0:
            side, setting, limit_ms = "ahead of", "after", self._limits.after_max_ms
        else:
            side, setting, limit_ms = "before", "before", self._limits.before_max_ms
        default_ms = _LATEST_DEFAULT_MS if ahead_ms > 0 else _EARLIEST_DEFAULT_MS
        if error.name() == "INVALID_RECORD" and abs(ahead_ms) < (limit_ms or default_ms):
            return explain_refusal(error, record.key, record.value, time_ms)
        known = "" if limit_ms is None else f"={limit_ms}"
        return (
            f"its time, {format_time(time_ms)} (@{time_ms}), is {abs(ahead_ms) / 1_000:.0f} s "
            f"{side} now, and topic {self._topic!r} takes no more than its message.timestamp."
            f"{setting}.max.ms{known}: give another time, or give the topic a larger limit"
        )

    def _count_bytes(self, record: EncodedRecord) -> int:
        """Return the size of a batch of one record, as brokers compare it with the limit."""
        size = (
            _RECORD_BYTES
            + _count_bytes_with_length(record.key)
            + _count_bytes_with_length(record.value)
        )
        size += _count_varint_bytes(len(self._headers))
        for name, value in self._headers:
            size += _count_bytes_with_length(name.encode())
            size += _count_bytes_with_length(value.encode() if isinstance(value, str) else value)
        return _BATCH_BYTES + _count_varint_bytes(size) + size


def _count_bytes_with_length(data: bytes | None) -> int:
    """Return the bytes of what follows its length; none has the length -1."""
    return 1 if data is None else _count_varint_bytes(len(data)) + len(data)


def _count_varint_bytes(number: int) -> int:
    """Return the bytes of a number of 0 or more as a zigzag varint."""
    return max((number * 2).bit_length() + 6, 7) // 7
