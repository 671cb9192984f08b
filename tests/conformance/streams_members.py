"""Provide members of a streams group (KIP-1071) that send single heartbeats for a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from coordinator.errors import Code
from tests.conformance.wire import Api, Client

REBALANCE_TIMEOUT_MS = 60_000
JOIN, LEAVE, AWAY = 0, -1, -2
ROLES = ("active", "standby", "warmup")

Tasks = dict[str, set[tuple[str, int]]]


@dataclass
class StreamsMember:
    """Represents one member: the tasks that it was told last, which it reports as owned."""

    client: Client
    group: str
    instance_id: str | None = None
    process_id: str = "process"
    member_id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    tasks: Tasks = field(default_factory=lambda: {role: set() for role in ROLES})

    def send(self, **fields: Any) -> Any:
        """Send a heartbeat with just these fields and the member's own id and epoch."""
        given = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "active_tasks": None,
            "standby_tasks": None,
            "warmup_tasks": None,
            "client_tags": None,
            "task_offsets": None,
            "task_end_offsets": None,
            **fields,
        }
        return self.client.send(Api.STREAMS_GROUP_HEARTBEAT, 0, **given)

    def beat(self, **fields: Any) -> Any:
        """Send a heartbeat that must be accepted, and apply its response."""
        response = self.send(**fields)
        assert response.error_code == Code.NONE, response
        self.apply(response)
        return response

    def apply(self, response: Any) -> None:
        """Take the epoch, and the tasks if the response has any, as the member's own."""
        self.epoch = response.member_epoch
        if response.active_tasks is not None:
            self.tasks = tasks_of(response)

    def join(self, topology: Mapping[str, Any], **fields: Any) -> Any:
        """Join, or join again, with a topology."""
        self.tasks = {role: set() for role in ROLES}
        return self.beat(**self.joining_fields(topology), **fields)

    def joining_fields(self, topology: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "member_epoch": JOIN,
            "rebalance_timeout": REBALANCE_TIMEOUT_MS,
            "topology": topology,
            "process_id": self.process_id,
            "client_tags": (),
            **encode_tasks({}),
        }

    def acknowledge(self, **fields: Any) -> Any:
        """Send a heartbeat that reports exactly the tasks that it was told as owned."""
        return self.beat(**encode_tasks(self.tasks), **fields)

    def leave(self, epoch: int = LEAVE) -> Any:
        return self.send(member_epoch=epoch)


def encode_tasks(tasks: Mapping[str, Iterable[tuple[str, int]]]) -> dict[str, Any]:
    """Return the fields of a heartbeat that reports tasks by role as owned."""
    fields: dict[str, Any] = {}
    for role in ROLES:
        partitions: dict[str, list[int]] = {}
        for subtopology_id, partition in sorted(tasks.get(role, ())):
            partitions.setdefault(subtopology_id, []).append(partition)
        fields[f"{role}_tasks"] = [
            {"subtopology_id": each, "partitions": indexes} for each, indexes in partitions.items()
        ]
    return fields


def tasks_of(holder: Any) -> Tasks:
    """Return tasks by role of a response to a heartbeat, or of a described assignment."""
    return {
        role: {
            (ids.subtopology_id, partition)
            for ids in getattr(holder, f"{role}_tasks") or ()
            for partition in ids.partitions
        }
        for role in ROLES
    }


def topology(*subtopologies: Mapping[str, Any], epoch: int = 0) -> dict[str, Any]:
    """Return the topology of a request; sub-topologies are numbered."""
    return {
        "epoch": epoch,
        "subtopologies": [
            {"subtopology_id": str(index), **each} for index, each in enumerate(subtopologies)
        ],
    }


def internal(name: str, partitions: int = 0, **configs: str) -> dict[str, Any]:
    """Return an internal topic of a topology."""
    pairs = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "topic_configs": pairs}


def describe(client: Client, *groups: str) -> Sequence[Any]:
    """Describe streams groups."""
    found: Sequence[Any] = client.send(Api.STREAMS_GROUP_DESCRIBE, 0, group_ids=groups).groups
    return found
