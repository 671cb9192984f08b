"""Find the memberships that a worker had before its process ended without leaving.

The protocol has no static members (Kafka 4.4: version 1, whose schema is not at hand), so that a
worker that was killed would wait for the end of its own former session. Its process id outlives it:
members with that id and another start are of a process that is gone, since a state directory gives
each id to one process at a time.
"""

from __future__ import annotations

from streams.membership.connection import BrokerConnection
from streams.membership.streams.group_description import describe_streams_group


def name_member(instance_id: str, start_id: str) -> str:
    """Return the member id of a thread in one start of its process."""
    return f"{instance_id}-{start_id}"


def find_former_members(
    connection: BrokerConnection, group_id: str, process_id: str, start_id: str
) -> list[str]:
    """Return the ids of a group's members that an earlier start of this process has left behind.

    Raises: ConnectionLost where the coordinator does not answer, StreamsError for a refusal.
    """
    group = describe_streams_group(connection, group_id)
    if group is None:
        return []
    return [
        each.member_id
        for each in group.members
        if each.process_id == process_id and not each.member_id.endswith(f"-{start_id}")
    ]
