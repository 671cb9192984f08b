"""Hold what a broker tells of a streams group (StreamsGroupDescribe, KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from streams.membership.streams.task_roles import TasksByRole
from streams.topology.streams_group_topology import SentTopology


class StreamsMemberDescription(NamedTuple):
    """Holds what a group knows of one member: who it is, its tasks, and those it is to have."""

    member_id: str
    epoch: int
    process_id: str
    client_host: str
    endpoint: str
    tags: Mapping[str, str]
    assigned: TasksByRole
    target: TasksByRole


class StreamsGroupDescription(NamedTuple):
    """Holds the state of a streams group, its epochs and its members.

    `sources` are the topics that each sub-topology reads, `changelogs` those it writes, by the
    number of the sub-topology. `topology` has all topics with what the group was told of them; the
    partitions of internal ones are derived by the broker where none were declared.
    """

    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[StreamsMemberDescription, ...]
    sources: Mapping[int, frozenset[str]]
    changelogs: Mapping[int, frozenset[str]]
    topology: SentTopology
