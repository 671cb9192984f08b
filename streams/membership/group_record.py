"""Measure the one record in `__consumer_offsets` that holds a group, before the leader writes it.

It has every member's subscription and assignment. Brokers refuse it beyond the topic's
`max.message.bytes`, and answer SyncGroup with UNKNOWN_SERVER_ERROR: each member would join again
and again, or end, and nobody would know why. Source: GroupMetadataValue (KAFKA-7149).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streams.errors import StreamsError

RECORD_BYTES_MAX = 1_048_588
"""Kafka's default of `max.message.bytes`, in bytes."""
_GROUP_BYTES, _MEMBER_BYTES = 200, 100
"""The bytes of a batch with its group, and of a member besides its ids and what it tells."""
_ACCEPTED_BYTES = 65_536
"""The size in bytes up to which the brokers' limit is not looked up."""
_ROOM_FACTOR = 2


def check_group_record(
    group_id: str,
    members: Any,
    assignments: Mapping[str, bytes],
    *,
    fetch_bytes_max: Callable[[], int],
) -> None:
    """Raise StreamsError if the record of a group would have more bytes than the brokers accept.

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
    bytes_max = fetch_bytes_max()
    if record_bytes <= bytes_max:
        return
    raise StreamsError(
        f"group {group_id!r} can't be formed: its record in __consumer_offsets would have "
        f"{record_bytes} bytes, of it {subscribed} of the subscriptions of {len(members)} members "
        f"and {assigned} of their assignments; the brokers accept {bytes_max} (max.message.bytes): "
        "run fewer threads (num_stream_threads) or workers, or raise it: kafka-configs --alter "
        "--entity-type topics --entity-name __consumer_offsets --add-config max.message.bytes="
        f"{_ROOM_FACTOR * record_bytes}"
    )
