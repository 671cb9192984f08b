"""Share topics, and a comparable line for each call, among random histories of a group.

Topics come, grow and go; the words of a line are the same for every broker.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count
from typing import Any
from uuid import UUID

from coordinator.errors import Code
from coordinator.shard.placement import partition_for
from tests.brokers import SETTINGS
from tests.conformance.calls import create_topic, topic_id
from tests.conformance.consumers import Consumer, describe
from tests.conformance.wire import Api, Client
from tests.processes import wait_until


class GroupHistory:
    """Represents one seed's calls about one group, and their results."""

    def __init__(self, client: Client, seed: int, group: str, names: tuple[str, ...]) -> None:
        self.client = client
        self.group = group
        self.lines: list[str] = []
        self.random = random.Random(seed)
        self.names = names
        self.partitions: dict[str, int] = {}  # of the topics that there are
        self.ids: dict[UUID, str] = {}
        same = (f"{group}-{i}" for i in count())
        shards = int(SETTINGS["offsets.topic.num.partitions"])
        probe = next(
            name for name in same if partition_for(name, shards) == partition_for(group, shards)
        )
        self._probe = Consumer(client, probe)

    def create_first_topics(self) -> None:
        """Create two of the topics."""
        for name in self.names[:2]:
            self._create(name, self.random.randint(1, 4))
        self._probe.join(*self.names)
        self._await_topics()

    def some_topics(self, at_least: int = 0) -> list[str]:
        return self.random.sample(self.names, self.random.randint(at_least, len(self.names)))

    def change_topics(self) -> None:
        name = self.random.choice(self.names)
        partitions = self.partitions.get(name)
        if partitions is None:
            self._create(name, self.random.randint(1, 4))
        elif self.random.random() < 0.5:
            self.partitions[name] = partitions + 1
            topics = [{"name": name, "count": partitions + 1, "assignments": None}]
            fields = {"topics": topics, "timeout": 10_000, "validate_only": False}
            self.client.send(Api.CREATE_PARTITIONS, 2, **fields)
        elif len(self.partitions) > 1:
            del self.partitions[name]
            self.client.send(Api.DELETE_TOPICS, 4, topic_names=[name], timeout=10_000)
        self._await_topics()
        self.add_line(f"topics {self.named(self.partitions.items())}", Code.NONE)

    def _create(self, name: str, partitions: int) -> None:
        create_topic(self.client, name, partitions)
        self.partitions[name] = partitions
        self.ids[topic_id(self.client, name)] = name

    def _await_topics(self) -> None:
        """Wait until the coordinator knows the topics, which takes a moment in real Kafka.

        The check uses another group.
        """

        def has_heard() -> bool:
            self._probe.acknowledge()
            known = {self.ids[each]: len(found) for each, found in self._probe.assigned.items()}
            return known == self.partitions

        wait_until(has_heard, what="the coordinator has not heard of a topic")

    # Results

    def add_line(self, what: str, code: Any, answer: str = "") -> None:
        """Add a line with a call, its response, and the coordinator's state afterwards."""
        found = describe(self.client, self.group)
        members = "".join(
            f"\n    {self.alias(each.member_id)} {each.instance_id} {each.rack_id} "
            f"of type {each.member_type} at {each.member_epoch}: "
            f"{sorted(self.names.index(name) for name in each.subscribed_topic_names)} "
            f"has {self.assignment(each.assignment)} of {self.assignment(each.target_assignment)}"
            for each in sorted(found.members, key=lambda each: self.alias(each.member_id))
        )
        self.lines.append(
            f"{what}: {Code(code).name} {answer}; {found.group_state} {found.group_epoch} "
            f"{found.assignment_epoch} {found.assignor_name}{members}"
        )

    def alias(self, member_id: str) -> str:
        """Return a name for the member id that is the same for every broker."""
        return member_id

    def assignment(self, assignment: Any) -> str:
        return self.named(
            (self.ids[topic.topic_id], sorted(topic.partitions))
            for topic in assignment.topic_partitions
        )

    def named(self, partitions: Iterable[tuple[str, Any]]) -> str:
        return str(sorted((self.names.index(name), found) for name, found in partitions))
