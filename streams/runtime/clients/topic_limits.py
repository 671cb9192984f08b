"""Tell from a topic's settings which records its brokers are certain to refuse.

Each record that a broker refuses costs a transaction. While one searches for such records
(`streams.runtime.clients.refused_writes`), those that the settings of their topic exclude need not
be sent to be known, so that many of them cost hardly more than one. What is not certain is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError

from state.early_serialization import ChangeLimit
from streams.errors import OutcomeUnknown, StreamsError

log = logging.getLogger(__name__)

_CLOCK_MARGIN_MS = 600_000
"""By how much a time has to be outside of the limits: clocks of brokers and workers differ."""
_RECORD_OVERHEAD_BYTES = 68
"""The bytes of a batch of one record without key and value, at least: 61, and 7 of the record."""
_COMPRESSION_SETTINGS = ("compression.type", "compression.codec")
MESSAGE_BYTES_MAX_DEFAULT = 1_000_000
"""librdkafka's default of a producer's `message.max.bytes`."""


class TopicLimits(NamedTuple):
    """Holds the limits that a topic sets to its records; None where there is none."""

    is_compacted: bool = False
    bytes_max: int | None = None
    """The largest batch in bytes (`max.message.bytes`), where it is not compressed."""
    before_max_ms: int | None = None
    after_max_ms: int | None = None
    batch_bytes_max: int | None = None
    """The largest batch in bytes (`max.message.bytes`), compressed or not."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, str], *, is_compressing: bool) -> TopicLimits:
        """Return the limits of a topic by its settings. Raises KeyError, ValueError."""
        keeps_times = settings["message.timestamp.type"] == "CreateTime"
        batch_bytes_max = int(settings["max.message.bytes"])
        return cls(
            is_compacted="compact" in settings["cleanup.policy"],
            bytes_max=None if is_compressing else batch_bytes_max,
            before_max_ms=int(settings["message.timestamp.before.max.ms"]) if keeps_times else None,
            after_max_ms=int(settings["message.timestamp.after.max.ms"]) if keeps_times else None,
            batch_bytes_max=batch_bytes_max,
        )

    def find_refusal(
        self, key: bytes | None, value: bytes | None, timestamp_ms: int, now_ms: int
    ) -> KafkaError | None:
        """Return the error with which a broker would refuse a record; None if it may take it."""
        if key is None and self.is_compacted:
            return KafkaError(KafkaError.INVALID_RECORD)
        if self.bytes_max is not None and len(key or b"") + len(value or b"") > self.bytes_max:
            return KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
        if timestamp_ms > 0:  # else it has the time of the producer, or none
            ahead_ms, margin_ms = timestamp_ms - now_ms, _CLOCK_MARGIN_MS
            after, before = self.after_max_ms, self.before_max_ms
            if (after is not None and ahead_ms > after + margin_ms) or (
                before is not None and -ahead_ms > before + margin_ms
            ):
                return KafkaError(KafkaError.INVALID_TIMESTAMP)
        return None


def find_change_limit(
    topic: str, size: int, limits: TopicLimits | None, producer_bytes_max: int
) -> ChangeLimit | None:
    """Return the largest key and value that a changelog takes, after `size` bytes were refused.

    None if it is not certain what would be refused, as with a producer that compresses.
    """
    if limits is None or limits.bytes_max is None:
        limit = ChangeLimit(producer_bytes_max, "message.max.bytes of the producer")
        return limit if size > producer_bytes_max else None
    # A record may have some bytes more besides key and value than the least.
    topic_bytes_max = min(limits.bytes_max - _RECORD_OVERHEAD_BYTES, size - 1)
    if topic_bytes_max < producer_bytes_max:
        return ChangeLimit(topic_bytes_max, f"max.message.bytes={limits.bytes_max} of {topic!r}")
    return ChangeLimit(producer_bytes_max, "message.max.bytes of the producer")


FetchTopicLimits = Callable[[str], TopicLimits | None]
"""Returns the limits of a topic; None if they are not known."""


def find_no_limits(topic: str) -> TopicLimits | None:
    """Return None: nothing is known of the limits of a topic."""


def create_limit_lookup(
    fetch_settings: Callable[[list[str]], Mapping[str, Mapping[str, str]]],
    producer_settings: Mapping[str, object],
) -> FetchTopicLimits:
    """Return a function that looks up the limits of a topic, for a producer with these settings."""
    is_compressing = any(
        producer_settings.get(name, "none") not in ("none", None) for name in _COMPRESSION_SETTINGS
    )

    def fetch_limits(topic: str) -> TopicLimits | None:
        try:
            settings = fetch_settings([topic])[topic]
            return TopicLimits.from_settings(settings, is_compressing=is_compressing)
        except (OutcomeUnknown, StreamsError, KeyError, ValueError) as error:
            # No answer, or no right to DescribeConfigs: each record is sent, to be refused.
            log.info("the limits of topic %r are not known: %s", topic, error)
            return None

    return fetch_limits
