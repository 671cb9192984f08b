"""The offset of a group that only librdkafka commits to, over whatever security it is set up with.

Asked as a consumer of the group: the admin client of librdkafka 2.16 ends the process where the
coordinator has moved or is loading (librdkafka issue 5040; seen with a broker that is new). What
other clients have written as metadata is not read back right: `streams.membership.offsets` does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.positions import Committed, Partition
from streams.runtime.clients.errors import made, recovery_from

_MOVING = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What librdkafka hands on of a coordinator that is new or has moved; the next question looks for
it again (seen with a broker that is new)."""
_AGAIN_S = 0.1


def stable_offset(
    settings: Mapping[str, Any], group: str, partition: Partition, timeout_s: float
) -> Committed | None:
    """What is committed, or None if nothing is; it waits for a transaction that is open.

    Raises OutcomeUnknown when that, or an answer, takes longer than `timeout_s`; StreamsError for a
    refusal. Source of the waiting: KIP-447 (require stable).
    """
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = made("consumer", Consumer, {**settings, **own})
    until_s = time.monotonic() + timeout_s
    try:
        while True:
            try:
                return _asked(consumer, partition, max(until_s - time.monotonic(), _AGAIN_S))
            except KafkaException as error:
                is_over = time.monotonic() + _AGAIN_S > until_s
                if is_over or error.args[0].code() not in _MOVING:
                    raise recovery_from(error, f"offset of group {group}") from error
            time.sleep(_AGAIN_S)
    finally:
        consumer.close()


def _asked(consumer: Any, partition: Partition, timeout_s: float) -> Committed | None:
    (found,) = consumer.committed([TopicPartition(*partition)], timeout_s)
    if found.error is not None:
        raise KafkaException(found.error)
    return None if found.offset < 0 else Committed(found.offset, found.metadata or "")
