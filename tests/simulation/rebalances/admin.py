"""Stand in for the leader's look-ups of topics and changelogs, which may get no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.clients.replication import Replication
from tests.simulation.rebalances.topologies import STORES, list_tasks
from tests.simulation.runtime.process import Process
from tests.simulation.runtime.topologies import changelog_of

_LATENCY_MS = 5


class LightAdmin:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._world: Any = process.world

    def fetch_partition_counts(self) -> dict[str, int]:
        self._ask()
        return dict(self._world.partition_counts)

    def create_topics(
        self, partition_counts: Mapping[str, int], settings: object, replication_factor: int
    ) -> None:
        self._ask()
        self._world.partition_counts |= partition_counts

    def fetch_available_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> dict[Partition, int]:
        self._ask()
        places = {
            Partition(changelog_of(store), int(task.partition("_")[2])): (task, store)
            for task, has_state in list_tasks().items()
            if has_state
            for store in STORES[1]
        }
        return {each: self._world.ends[places[each]] for each in partitions}

    def list_groups(self) -> list[str]:
        return []

    def fetch_topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        return {topic: {} for topic in topics}

    def fetch_replication(self, topics: Sequence[str]) -> Replication:
        return Replication(1, dict.fromkeys(topics, 1))

    def _ask(self) -> None:
        """Wait for an answer. Raises OutcomeUnknown if there is none."""
        process = self._process
        process.call(process.sleep_ms(_LATENCY_MS), None)
        if not self._world.is_listening or process.random.random() < process.trouble:
            process.call(process.sleep_ms(1_000), None)
            raise OutcomeUnknown("no broker answers")


def create_admin(process: Process) -> AdminClient:
    """Return the admin client of a process."""
    return cast(AdminClient, LightAdmin(process))
