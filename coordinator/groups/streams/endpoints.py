"""Describe which partitions the endpoints of a group's members serve, for queries of their stores.

Source: EndpointToPartitionsManager of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import is_not
from typing import NamedTuple, TypeAlias

from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.streams.configure import ConfiguredTopology
from coordinator.groups.streams.record_types import Endpoint
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import AssignedTasks, TaskId, group_by_subtopology

TopicIndexes: TypeAlias = list[tuple[str, list[int]]]  # topic name, partitions


@dataclass(frozen=True, slots=True, eq=False)
class EndpointPartitions:
    """Represents an endpoint with the source partitions of its member's tasks.

    It is hashed by its identity, so that it can be encoded once for all answers that list it.
    """

    endpoint: Endpoint
    active: TopicIndexes
    standby: TopicIndexes


class EndpointCache:
    """Keeps what the members' endpoints serve, from one answer of a group to the next.

    A thousand members are told of a thousand endpoints, of which few have changed in between. So
    what each serves is found again only if its member has changed, and members are looked at one by
    one only where they have.
    """

    def __init__(self) -> None:
        self._version: tuple[ConfiguredTopology, int] | None = None  # and that of the topics
        self._known: dict[str, _KnownEndpoint] = {}  # by member id
        # The group's members in order, and what each serves in the same place.
        self._members: list[StreamsGroupMember] = []
        self._served: list[EndpointPartitions | None] = []
        self._places: dict[str, int] = {}  # by member id

    def list_endpoints(
        self,
        group: StreamsGroup,
        updated: StreamsGroupMember,
        replaced_member_id: str | None,
        configured: ConfiguredTopology,
        topics: TopicList,
    ) -> tuple[EndpointPartitions, ...]:
        """Return what each member that has an endpoint serves, the updated member last."""
        version = self._version
        if version is None or version[0] is not configured or version[1] != topics.version:
            self._version = configured, topics.version
            self._known.clear()
            self._members.clear()
        self._update_known_members([*group.members.values()], configured, topics)
        served = self._served.copy()
        for member_id in (updated.member_id, replaced_member_id):
            place = self._places.get(member_id or "")
            if place is not None:
                served[place] = None
        served.append(self._find_cached_partitions(updated, configured, topics))
        return tuple(filter(None, served))

    def _update_known_members(
        self, members: list[StreamsGroupMember], configured: ConfiguredTopology, topics: TopicList
    ) -> None:
        """Update the cached endpoints of members that changed or left since the last answer."""
        before, self._members = self._members, members
        if len(members) < len(before) or not before:
            self._served, self._places = [], {}
            before = []
            present = {each.member_id for each in members}
            self._known = {key: each for key, each in self._known.items() if key in present}
        served, places = self._served, self._places
        served.extend([None] * (len(members) - len(served)))
        has_changed = map(is_not, members, chain(before, repeat(None)))
        for place in compress(range(len(members)), has_changed):
            member = members[place]
            places[member.member_id] = place
            served[place] = self._find_cached_partitions(member, configured, topics)
        if len(places) > len(members):  # one has left since, and another one has come
            self._places = {each.member_id: place for place, each in enumerate(members)}

    def _find_cached_partitions(
        self, member: StreamsGroupMember, configured: ConfiguredTopology, topics: TopicList
    ) -> EndpointPartitions | None:
        endpoint, assigned = member.endpoint, member.assigned
        if endpoint is None:
            return None
        known = self._known.get(member.member_id)
        if known is None or known.assigned is not assigned or known.served.endpoint != endpoint:
            found = _find_served_partitions(endpoint, assigned, configured, topics)
            known = self._known[member.member_id] = _KnownEndpoint(assigned, found)
        return known.served


class _KnownEndpoint(NamedTuple):
    """Holds what a member's endpoint serves, and the tasks that this follows from."""

    assigned: AssignedTasks
    served: EndpointPartitions


def _find_served_partitions(
    endpoint: Endpoint, assigned: AssignedTasks, configured: ConfiguredTopology, topics: TopicList
) -> EndpointPartitions:
    return EndpointPartitions(
        endpoint,
        _list_partitions(assigned.active, configured, topics),
        _list_partitions(assigned.standby | assigned.warmup, configured, topics),
    )


def _list_partitions(
    tasks: Iterable[TaskId], configured: ConfiguredTopology, topics: TopicList
) -> TopicIndexes:
    """Return the partitions of the source topics of tasks."""
    listed: TopicIndexes = []
    for subtopology_id, indexes in group_by_subtopology(tasks).items():
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        repartition_names = [topic.name for topic in subtopology.repartition_source_topics]
        for name in (*subtopology.source_topics, *repartition_names):
            topic = topics.get(name)
            partition_count = 0 if topic is None else len(topic.partitions)
            served = [index for index in indexes if index < partition_count]
            if served:
                listed.append((name, served))
    return listed
