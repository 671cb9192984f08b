"""Test that tasks run in the racks of what they read, on three nodes in three racks (KIP-925)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations, product
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions

from streams.processes.running import RunningApp
from streams.topology.expand import name_changelog_topic
from tests.cluster.nodes import NODES, KafkaCluster, name_rack
from tests.cluster.placement import Placement
from tests.integration.cluster import Topics
from tests.integration.running import start_counting
from tests.processes import HANG_LIMIT_S, wait_until

RECORDS = 150
TASKS = 2 * len(NODES)
Tasks = Mapping[int, list[str]]
"""The tasks of the worker in each node's rack."""


class RackWorkers:
    """Runs a worker in the rack of each node, which counts by key, with one standby task each."""

    def __init__(self, topics: Topics, directory: Path, closing: ExitStack) -> None:
        self._topics = topics
        self._directory = directory
        self._closing = closing
        self.running: dict[int, RunningApp] = {}
        for number in NODES:
            self.start(number)

    def start(self, number: int) -> None:
        """Start the worker of a rack, on the state that a former one has left."""
        self.running[number] = self._closing.enter_context(
            start_counting(
                self._topics,
                self._directory / name_rack(number),
                client_rack=name_rack(number),
                rack_aware_assignment_strategy="min_traffic",
                num_standby_replicas=1,
                replication_factor=1,
            )
        )

    def restart(self, number: int) -> None:
        """Close a worker and start another one, so that the group is rebalanced."""
        self.running[number].close()
        self.start(number)

    def list_tasks(self) -> tuple[Tasks, Tasks]:
        """Return the active and the standby tasks of the worker in each rack."""
        threads = {n: each.metadata_for_local_threads() for n, each in self.running.items()}
        active = {
            n: sorted(task.task_id for each in found for task in each.active_tasks)
            for n, found in threads.items()
        }
        standby = {
            n: sorted(task.task_id for each in found for task in each.standby_tasks)
            for n, found in threads.items()
        }
        return active, standby

    def wait_for_tasks(self, active: Tasks, changelogs: Mapping[str, int] | None = None) -> None:
        """Wait until each worker has these active tasks, and standbys are where they may be.

        `changelogs` are the nodes of the tasks' changelogs.
        """
        found = [self.list_tasks()]

        def are_placed() -> bool:
            found[0] = self.list_tasks()
            return found[0][0] == active and (
                changelogs is None or are_standbys_near(*found[0], changelogs)
            )

        wait_until(are_placed, what=lambda: f"{found[0]}, wanted {active}, {changelogs}")


def are_standbys_near(active: Tasks, standby: Tasks, changelogs: Mapping[str, int]) -> bool:
    """Return whether all standbys are there, and no two workers have some to exchange for nearer.

    Kafka Streams, too, exchanges them between two workers at a time.
    """
    if sorted(each for tasks in standby.values() for each in tasks) != sorted(changelogs):
        return False
    for one, other in combinations(NODES, 2):
        for first, second in product(standby[one], standby[other]):
            is_possible = first not in active[other] and second not in active[one]
            now = (changelogs[first] == one) + (changelogs[second] == other)
            then = (changelogs[first] == other) + (changelogs[second] == one)
            if is_possible and then > now:
                return False
    return True


def shift(number: int, by: int) -> int:
    """Return the node that is so many further on."""
    return NODES[(number - 1 + by) % len(NODES)]


def delete_topics(admin: AdminClient, prefix: str) -> None:
    """Delete the topics whose names begin with `prefix`.

    A partition whose only replica is killed stays without a leader (KIP-966): the cluster would not
    be whole again after the next kill.
    """
    listed = admin.list_topics(timeout=HANG_LIMIT_S).topics
    for done in admin.delete_topics([each for each in listed if each.startswith(prefix)]).values():
        done.result(HANG_LIMIT_S)


def test_tasks_run_in_the_racks_of_their_inputs_and_standbys_in_those_of_changelogs(
    cluster: KafkaCluster, unique: Callable[[str], str], tmp_path: Path
) -> None:
    placement = Placement(cluster.bootstrap_servers)
    name = unique("racks")
    topics = Topics(cluster.bootstrap_servers, name)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    more = admin.create_partitions([NewPartitions(topics.source, TASKS)])
    more[topics.source].result(HANG_LIMIT_S)
    wait_until(
        lambda: len(admin.list_topics(topics.source).topics[topics.source].partitions) == TASKS,
        what="all nodes know the partitions",
    )
    changelog = name_changelog_topic(topics.application, "counts")

    def place(topic: str, nodes: Sequence[int]) -> None:
        placement.reassign({(topic, number): (node,) for number, node in enumerate(nodes)})

    def expect(nodes: Sequence[int]) -> Tasks:
        """Return the tasks in each rack if their inputs are on these nodes."""
        return {n: [f"0_{at}" for at, node in enumerate(nodes) if node == n] for n in NODES}

    inputs = [shift(NODES[number % len(NODES)], 1) for number in range(TASKS)]
    place(topics.source, inputs)
    with ExitStack() as closing:
        closing.callback(delete_topics, admin, name)
        workers = RackWorkers(topics, tmp_path, closing)
        workers.wait_for_tasks(expect(inputs))
        topics.load(RECORDS)
        assert topics.wait_for_counts(RECORDS) == topics.truth
        for first, second in ((1, 2), (2, 1)):
            inputs = [shift(node, 1) for node in inputs]
            changelogs = [
                shift(node, first if number < len(NODES) else second)
                for number, node in enumerate(inputs)
            ]
            place(topics.source, inputs)
            place(changelog, changelogs)
            workers.restart(NODES[0])
            workers.wait_for_tasks(
                expect(inputs), {f"0_{number}": node for number, node in enumerate(changelogs)}
            )
            topics.load(RECORDS)
            assert topics.wait_for_counts(topics.loaded) == topics.truth
