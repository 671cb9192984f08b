"""Find the memberships that a worker had before its process ended without leaving.

The protocol has no static members (Kafka 4.4: version 1, whose schema is not at hand), so that a
worker that was killed would wait for the end of its own former session. Its instance ids outlive
it: members with one of them and another start are of a process that is gone, since a state
directory gives each of its slots to one process at a time. The process id of the protocol does not
tell: all workers on a state directory have the same one.
"""

from __future__ import annotations

from streams.membership.connection import BrokerConnection
from streams.membership.streams.group_description import describe_streams_group


def name_member(instance_id: str, start_id: str) -> str:
    """Return the member id of a thread in one start of its process."""
    return f"{instance_id}-{start_id}"


def find_process_id(group_id: str, member_id: str) -> str:
    """Return the id of the process slot that a worker's member id names; empty for other members.

    It is the same for all threads of a process, and in each of its starts.
    """
    name = member_id.rsplit("-", 2)[0]
    return name.removeprefix(f"{group_id}-") if name.startswith(f"{group_id}-") else ""


def find_former_members(connection: BrokerConnection, group_id: str, member_id: str) -> list[str]:
    """Return the ids of a group's members that earlier starts of a member's process left behind.

    Raises: ConnectionLost where the coordinator does not answer, StreamsError for a refusal.
    """
    group = describe_streams_group(connection, group_id)
    if group is None:
        return []
    process_id, start_id = find_process_id(group_id, member_id), member_id.rpartition("-")[2]
    return [
        each.member_id
        for each in group.members
        if find_process_id(group_id, each.member_id) == process_id
        and not each.member_id.endswith(f"-{start_id}")
    ]
