"""Tell which workers run the tasks of a store, by what the group's leader has told all members.

Only workers with a `query_port` have an endpoint. The knowledge is as old as the last assignment:
between that and the next one a task stays where it is, or runs nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from streams.common.addresses import format_address, parse_address
from streams.membership.protocol import AssignmentInfo, EndpointTasks
from streams.topology.build import Subtopology

AssignedAtS: TypeAlias = float

TimedAssignment = tuple[float, AssignmentInfo | None]
"""The monotonic time in s at which a thread took an assignment over, and the assignment."""


class StoreHost(NamedTuple):
    """Represents a worker that has one partition of a store (StreamsMetadata, KeyQueryMetadata)."""

    host: str
    port: int
    partition: int
    role: Literal["active", "standby"]
    age_s: float
    """The seconds since the assignment that says so."""
    lag: int | None = None
    """How many offsets a standby is behind its changelog; None where that is not known here."""

    @property
    def address(self) -> str:
        """Return host:port, with IPv6 in brackets."""
        return format_address((self.host, self.port))


class StoreHosts:
    """Finds the workers of one store's sub-topology in the newest assignment of this worker."""

    def __init__(
        self,
        subtopology: Subtopology,
        list_assignments: Callable[[], Sequence[TimedAssignment]],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._prefix = f"{subtopology.number}_"
        self._list_assignments = list_assignments
        self._monotonic_s = monotonic_s

    def list_hosts(self) -> list[StoreHost]:
        """Return the workers of each partition, the active one first, by partition."""
        assigned_at_s, endpoints = self._find_newest()
        age_s = self._monotonic_s() - assigned_at_s
        found = []
        for endpoint, tasks in endpoints.items():
            host, port = parse_address(endpoint)
            for partition in self._list_partitions(tasks.active):
                found.append(StoreHost(host, port, partition, "active", age_s))
            for partition in self._list_partitions(tasks.standby):
                found.append(StoreHost(host, port, partition, "standby", age_s))
        return sorted(found, key=lambda each: (each.partition, each.role))

    def find_active_endpoint(self, partition: int) -> str | None:
        """Return the address of the worker that has the active task of a partition, if any."""
        task = f"{self._prefix}{partition}"
        _, endpoints = self._find_newest()
        return next((each for each, tasks in endpoints.items() if task in tasks.active), None)

    def _find_newest(self) -> tuple[AssignedAtS, Mapping[str, EndpointTasks]]:
        """Return the endpoints of the newest assignment that has any, and its time."""
        known = [
            (at_s, assigned.endpoints)
            for at_s, assigned in self._list_assignments()
            if assigned is not None and assigned.endpoints
        ]
        return max(known, key=lambda each: each[0], default=(self._monotonic_s(), {}))

    def _list_partitions(self, tasks: Iterable[str]) -> list[int]:
        """Return the partitions of those tasks that are of the store's sub-topology."""
        prefix = self._prefix
        return [int(task.removeprefix(prefix)) for task in tasks if task.startswith(prefix)]
