"""Fetch the committed offset of a group that only librdkafka commits to.

It is fetched as a consumer of the group: the admin client of librdkafka 2.16 ends the process where
the coordinator has moved or is loading (librdkafka issue 5040; seen with a broker that is new).
What other clients have written as metadata is not read back right:
`streams.membership.group_offsets` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError
from streams.runtime.clients.errors import NotReady, create_client, translate_client_error
from streams.runtime.clients.retrying import call_with_retries

_REQUEST_TIMEOUT_MIN_S = 0.1
"""The least seconds that a request for committed offsets waits for its response."""
_EVENTS_MAX = 100
_REQUEST_TIMEOUT_MAX_S = 2.0
"""The most seconds that a request for committed offsets waits before refusals are looked for."""


def fetch_stable_offset(
    settings: Mapping[str, Any], group: str, partition: Partition, timeout_s: float
) -> OffsetAndMetadata | None:
    """Return a group's committed offset, or None, after waiting for an open transaction on it.

    Raises: OutcomeUnknown when that, or an answer, takes longer than `timeout_s`; StreamsError for
    a refusal, AuthorizationError where the right to the group is missing. Source of the waiting:
    KIP-447 (require stable).
    """
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = create_client("consumer", Consumer, {**settings, **own})
    try:
        # librdkafka returns the errors of a coordinator that is new or has moved; the next request
        # finds the coordinator again (seen with a broker that is new).
        return call_with_retries(
            lambda left_s: _fetch_committed(
                consumer,
                group,
                partition,
                min(max(left_s, _REQUEST_TIMEOUT_MIN_S), _REQUEST_TIMEOUT_MAX_S),
            ),
            timeout_s,
            NotReady,
        )
    finally:
        consumer.close()


def _fetch_committed(
    consumer: Any, group: str, partition: Partition, timeout_s: float
) -> OffsetAndMetadata | None:
    try:
        (result,) = consumer.committed([TopicPartition(*partition)], timeout_s)
        if result.error is not None:
            raise KafkaException(result.error)
    except KafkaException as error:
        causes = [error.args[0]]
        if causes[0].code() == KafkaError._TIMED_OUT:
            # librdkafka looks for the coordinator until the time is over, also where it may not,
            # and tells the reason only to who asks for records.
            causes += [message.error() for message in consumer.consume(_EVENTS_MAX, 0)]
        if any(each.code() == KafkaError.GROUP_AUTHORIZATION_FAILED for each in causes):
            raise AuthorizationError("Read", "group", group) from error
        raise translate_client_error(error, f"offset of group {group}") from error
    return None if result.offset < 0 else OffsetAndMetadata(result.offset, result.metadata or "")
