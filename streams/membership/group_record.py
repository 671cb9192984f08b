"""Measure what a group sends and keeps, before a broker refuses it without a reason.

The record in `__consumer_offsets` that holds a group has every member's subscription and
assignment. Brokers refuse it beyond the topic's `max.message.bytes`, and answer SyncGroup with
UNKNOWN_SERVER_ERROR: each member would join again and again, or end, and nobody would know why.
Source: GroupMetadataValue (KAFKA-7149). A request beyond `socket.request.max.bytes` is not answered
at all: the broker closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streams.command_lines import format_kafka_command
from streams.common.counted import format_count
from streams.errors import StreamsError

RECORD_BYTES_MAX = 1_048_588
"""Kafka's default of `max.message.bytes`, in bytes."""
REQUEST_BYTES_MAX = 104_857_600
"""Kafka's default of `socket.request.max.bytes`, in bytes."""
_GROUP_BYTES, _MEMBER_BYTES = 200, 100
"""The bytes of a batch with its group, and of a member besides its ids and what it tells."""
_ACCEPTED_BYTES = 65_536
"""The size in bytes up to which the brokers' limit is not looked up."""
_ROOM_FACTOR = 2


class GroupSizeLimits(NamedTuple):
    """Holds how many bytes the brokers accept of a group's record, and of a request."""

    record_bytes_max: int = RECORD_BYTES_MAX
    request_bytes_max: int = REQUEST_BYTES_MAX


FetchSizeLimits = Callable[[], GroupSizeLimits]


def check_join_request(
    group_id: str, subscription: bytes, *, fetch_limits: FetchSizeLimits
) -> None:
    """Raise StreamsError if a JoinGroup with this subscription is larger than brokers accept."""
    request_bytes = _GROUP_BYTES + _MEMBER_BYTES + len(subscription)
    if request_bytes > _ACCEPTED_BYTES:
        _check_request(group_id, "JoinGroup", request_bytes, fetch_limits())


def _check_request(group_id: str, name: str, request_bytes: int, limits: GroupSizeLimits) -> None:
    """Raise StreamsError if a request has more bytes than a broker accepts."""
    if request_bytes > limits.request_bytes_max:
        raise StreamsError(
            f"group {group_id!r} can't be joined: {name} would have {request_bytes} bytes, and "
            f"the brokers accept {limits.request_bytes_max} (socket.request.max.bytes): run fewer "
            f"tasks or threads, or raise it on all brokers to {_ROOM_FACTOR * request_bytes}"
        )


def check_group_record(
    group_id: str,
    members: Any,
    assignments: Mapping[str, bytes],
    *,
    fetch_limits: FetchSizeLimits,
) -> None:
    """Raise StreamsError if a group's record or its SyncGroup has more bytes than brokers accept.

    `members` are those of the leader's JoinGroup response, `assignments` are encoded, by member id.
    """
    subscribed = sum(len(each.metadata) for each in members)
    assigned = sum(map(len, assignments.values()))
    identified = sum(
        2 * len(each.member_id) + len(each.group_instance_id or "") + _MEMBER_BYTES
        for each in members
    )
    record_bytes = _GROUP_BYTES + subscribed + assigned + identified
    if record_bytes <= _ACCEPTED_BYTES:
        return
    limits = fetch_limits()
    _check_request(group_id, "SyncGroup", _GROUP_BYTES + assigned + identified, limits)
    bytes_max = limits.record_bytes_max
    if record_bytes <= bytes_max:
        return
    raise StreamsError(
        f"group {group_id!r} can't be formed: its record in __consumer_offsets would have "
        f"{record_bytes} bytes, of it {subscribed} of the subscriptions of "
        f"{format_count(len(members), 'member')} "
        f"and {assigned} of their assignments; the brokers accept {bytes_max} (max.message.bytes): "
        "run fewer threads (num_stream_threads) or workers, or raise it: "
        + format_kafka_command(
            "kafka-configs.sh",
            *("--alter", "--entity-type", "topics", "--entity-name", "__consumer_offsets"),
            *("--add-config", f"max.message.bytes={_ROOM_FACTOR * record_bytes}"),
        )
    )
