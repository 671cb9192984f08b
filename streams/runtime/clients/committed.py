"""Fetch the committed offset of a group that only librdkafka commits to.

It is fetched as a consumer of the group: the admin client of librdkafka 2.16 ends the process where
the coordinator has moved or is loading (librdkafka issue 5040; seen with a broker that is new).
What other clients have written as metadata is not read back right:
`streams.membership.group_offsets` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.positions import Committed, Partition
from streams.runtime.clients.errors import NotReady, made, recovery_from
from streams.runtime.clients.retrying import retry

_ANSWER_S = 0.1
"""How long a request waits at least."""


def stable_offset(
    settings: Mapping[str, Any], group: str, partition: Partition, timeout_s: float
) -> Committed | None:
    """Return a group's committed offset, None if it has none, once no transaction is open on it.

    Raises: OutcomeUnknown when that, or an answer, takes longer than `timeout_s`; StreamsError for
    a refusal. Source of the waiting: KIP-447 (require stable).
    """
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = made("consumer", Consumer, {**settings, **own})
    try:
        # librdkafka returns the errors of a coordinator that is new or has moved; the next request
        # finds the coordinator again (seen with a broker that is new).
        return retry(
            lambda left_s: _asked(consumer, group, partition, max(left_s, _ANSWER_S)),
            timeout_s,
            NotReady,
        )
    finally:
        consumer.close()


def _asked(consumer: Any, group: str, partition: Partition, timeout_s: float) -> Committed | None:
    try:
        (result,) = consumer.committed([TopicPartition(*partition)], timeout_s)
        if result.error is not None:
            raise KafkaException(result.error)
    except KafkaException as error:
        raise recovery_from(error, f"offset of group {group}") from error
    return None if result.offset < 0 else Committed(result.offset, result.metadata or "")
