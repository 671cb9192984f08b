"""What members and leader tell each other: ConsumerProtocol, our tasks as JSON in its user data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import Subscription

_FORMAT = 1


class Subscribed(NamedTuple):
    """What a member tells the leader: the tasks that it runs now, and if all are to end, why."""

    tasks: tuple[str, ...]
    shutdown: str = ""


class Assigned(NamedTuple):
    """What the leader gives a member: its tasks, and the partitions that they read. Or it passes
    on why all are to end: then there are none."""

    tasks: tuple[str, ...]
    partitions: tuple[tuple[str, int], ...]
    shutdown: str = ""


def encode_subscription(topics: Iterable[str], subscribed: Subscribed) -> bytes:
    user_data = _user_data(subscribed.tasks, subscribed.shutdown)
    return consumer_protocol.encode_subscription(Subscription(tuple(topics), user_data))


def decode_subscription(data: bytes) -> Subscribed:
    """Raises ValueError for bytes that no member of ours has sent."""
    return Subscribed(*_ours(consumer_protocol.decode_subscription(data).user_data))


def encode_assignment(assigned: Assigned) -> bytes:
    user_data = _user_data(assigned.tasks, assigned.shutdown)
    return consumer_protocol.encode_assignment(assigned.partitions, user_data)


def decode_assignment(data: bytes) -> Assigned:
    """Raises ValueError for bytes that no leader of ours has sent. Empty: no tasks."""
    if not data:
        return Assigned((), ())
    partitions, user_data = consumer_protocol.decode_assignment(data)
    tasks, shutdown = _ours(user_data)
    return Assigned(tasks, tuple(partitions), shutdown)


def _user_data(tasks: tuple[str, ...], shutdown: str) -> bytes:
    """`shutdown` is there only if it says something: members of before don't know it."""
    told = {"shutdown": shutdown} if shutdown else {}
    return orjson.dumps({"format": _FORMAT, "tasks": tasks, **told})


def _ours(user_data: bytes | None) -> tuple[tuple[str, ...], str]:
    found: Any = orjson.loads(user_data or b"null")
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"user data of an unknown format: {user_data!r:.200}")
    return tuple(found["tasks"]), found.get("shutdown", "")
