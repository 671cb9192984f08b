"""Provide members of streams groups that send heartbeats to a world of unit tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator.groups.streams.command import StreamsHeartbeat, StreamsHeartbeatAnswer
from coordinator.groups.streams.config import StreamsGroupSettings
from coordinator.groups.streams.configure import StreamsStatusCode
from coordinator.groups.streams.state import StreamsGroup
from coordinator.groups.streams.tasks import NO_ROLES, TaskRoles
from coordinator.groups.streams.topology import (
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)
from tests.unit.coordinator.world import World

GROUP = "counts"
SESSION_MS = 45_000
REBALANCE_MS = 60_000
CHANGELOG = InternalTopic("counts-changelog", configs=(("cleanup.policy", "compact"),))
TOPOLOGY = StreamsTopology(1, (StreamsSubtopology("0", ("words",), changelog_topics=(CHANGELOG,)),))
STATELESS = StreamsTopology(1, (StreamsSubtopology("0", ("words",)),))
AT_ONCE = StreamsGroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)


@dataclass
class FakeStreamsMember:
    """Represents one member: the tasks that it was told last, which it reports as owned."""

    world: World
    member_id: str
    process_id: str = ""
    instance_id: str | None = None
    topology: StreamsTopology = STATELESS
    epoch: int = 0
    tasks: TaskRoles = NO_ROLES
    answer: StreamsHeartbeatAnswer = field(default=StreamsHeartbeatAnswer("", 0))

    def send(self, **fields: Any) -> StreamsHeartbeatAnswer:
        """Send a heartbeat with just these fields; take what the answer says as the member's."""
        command = StreamsHeartbeat(
            group_id=GROUP,
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id="c",
            client_host="/h",
            **{"epoch": self.epoch, **fields},
        )
        self.answer = answer = self.world.groups.streams.handle_heartbeat(command)
        self.epoch = answer.epoch
        if answer.assigned is not None:
            assigned = answer.assigned
            self.tasks = TaskRoles(frozenset(assigned.active), assigned.standby, assigned.warmup)
        return answer

    def join(self, **fields: Any) -> StreamsHeartbeatAnswer:
        self.tasks = NO_ROLES
        return self.send(
            **{
                "epoch": 0,
                "topology": self.topology,
                "owned": NO_ROLES,
                "rebalance_timeout_ms": REBALANCE_MS,
                "process_id": self.process_id or f"p-{self.member_id}",
                **fields,
            }
        )

    def beat(self, **fields: Any) -> StreamsHeartbeatAnswer:
        """Send a heartbeat that reports the tasks that the member was told."""
        return self.send(owned=self.tasks, **fields)

    @property
    def active(self) -> list[int]:
        """Return the partitions of the active tasks, of whatever sub-topology."""
        return sorted(partition for _, partition in self.tasks.active)

    @property
    def statuses(self) -> list[StreamsStatusCode]:
        return [status.code for status in self.answer.statuses]


def find_group(world: World) -> StreamsGroup:
    shard = world.groups.shards[world.groups.partition_of(GROUP)]
    return shard.state.streams[GROUP]
