"""Answer DescribeGroups and ListGroups for classic groups.

A group that somebody only commits offsets for has no members and no protocol type; it is Empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.offsets.state import OffsetState

CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """Represents one group in the answer to ListGroups."""

    group_id: str
    kind: str
    protocol_type: str
    phase: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """Represents one member in the answer to DescribeGroups."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """Represents one group in the answer to DescribeGroups."""

    phase: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


def describe_classic_group(
    group: ClassicGroup | None, group_id: str, offsets: OffsetState
) -> DescribedGroup | None:
    """Describe a classic group, or one that has only offsets; return None if there is none.

    Metadata and protocol are shown while Stable only, as they mean nothing in a rebalance.
    """
    if group is None:
        if group_id in offsets.groups:
            return DescribedGroup(ClassicGroupPhase.EMPTY.value, "", "", ())
        return None
    protocol = group.protocol if group.phase is ClassicGroupPhase.STABLE else None
    members = tuple(
        DescribedMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=b"" if protocol is None else member.metadata_of(protocol),
            assignment=member.assignment,
        )
        for member in group.members.values()
    )
    return DescribedGroup(group.phase.value, group.protocol_type or "", protocol or "", members)


def list_classic_groups(
    groups: Mapping[str, ClassicGroup], simple_group_ids: Iterable[str]
) -> Iterator[ListedGroup]:
    """Yield the list entries of classic groups, and of those that only have offsets."""
    for group_id, group in groups.items():
        yield ListedGroup(group_id, CLASSIC, group.protocol_type or "", group.phase.value)
    for group_id in sorted(simple_group_ids):
        yield ListedGroup(group_id, CLASSIC, "", ClassicGroupPhase.EMPTY.value)
