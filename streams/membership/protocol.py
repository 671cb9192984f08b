"""What members and leader tell each other: ConsumerProtocol, our tasks as JSON in its user data."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from kio.schema.consumer_protocol_assignment.v3.data import (
    ConsumerProtocolAssignment,
)
from kio.schema.consumer_protocol_assignment.v3.data import (
    TopicPartition as AssignedTopic,
)
from kio.schema.consumer_protocol_subscription.v3.data import ConsumerProtocolSubscription
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

_VERSION = (3).to_bytes(2, "big")
_FORMAT = 1


class Subscribed(NamedTuple):
    """What a member tells the leader: the tasks that it runs now."""

    tasks: tuple[str, ...]


class Assigned(NamedTuple):
    """What the leader gives a member: its tasks, and the partitions that they read."""

    tasks: tuple[str, ...]
    partitions: tuple[tuple[str, int], ...]


def encode_subscription(topics: Iterable[str], subscribed: Subscribed) -> bytes:
    return _encode(
        ConsumerProtocolSubscription(
            topics=tuple(topics),
            user_data=orjson.dumps({"format": _FORMAT, "tasks": subscribed.tasks}),
            owned_partitions=(),
        )
    )


def decode_subscription(data: bytes) -> Subscribed:
    """Raises ValueError for bytes that no member of ours has sent."""
    entity = _decode(ConsumerProtocolSubscription, data)
    return Subscribed(tuple(_user_data(entity.user_data)["tasks"]))


def encode_assignment(assigned: Assigned) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in assigned.partitions:
        topics.setdefault(topic, []).append(partition)
    listed: Any = tuple(
        AssignedTopic(topic=topic, partitions=tuple(partitions))  # type: ignore[arg-type]
        for topic, partitions in topics.items()
    )
    user_data = orjson.dumps({"format": _FORMAT, "tasks": assigned.tasks})
    return _encode(ConsumerProtocolAssignment(assigned_partitions=listed, user_data=user_data))


def decode_assignment(data: bytes) -> Assigned:
    """Raises ValueError for bytes that no leader of ours has sent. Empty: no tasks."""
    if not data:
        return Assigned((), ())
    entity = _decode(ConsumerProtocolAssignment, data)
    partitions = tuple(
        (str(each.topic), int(partition))
        for each in entity.assigned_partitions
        for partition in each.partitions
    )
    return Assigned(tuple(_user_data(entity.user_data)["tasks"]), partitions)


def _encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    buffer.write(_VERSION)
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _decode(entity_type: type[Any], data: bytes) -> Any:
    if data[: len(_VERSION)] != _VERSION:
        raise ValueError(f"not ConsumerProtocol 3: {data!r:.200}")
    try:
        entity, _ = entity_reader(entity_type)(data, len(_VERSION))
    except SerialError as error:
        raise ValueError(f"not of ConsumerProtocol ({error}): {data!r:.200}") from error
    return entity


def _user_data(data: bytes | None) -> Any:
    found = orjson.loads(data or b"null")
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"user data of an unknown format: {data!r:.200}")
    return found
