"""Test standby tasks with real clients: they follow, and are promoted with what they have.

The group's leader is made to give each task to every other member as a standby.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from state.rocksdb import read_stored_checkpoint
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.processes.running import RunningApp
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics, Worker, stored_counts
from tests.integration.running import start_counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


@pytest.fixture(autouse=True)
def standbys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the leader give each task to all members that don't process it, as a standby."""
    assign = StreamsPartitionAssignor.assign_group

    def assign_with_standbys(
        assignor: StreamsPartitionAssignor, members: Mapping[str, SubscriptionInfo]
    ) -> dict[str, AssignmentInfo]:
        assigned = assign(assignor, members)
        return {
            member: mine._replace(
                standby=tuple(t for m, o in assigned.items() if m != member for t in o.tasks),
                following=tuple(
                    p for m, o in assigned.items() if m != member for p in o.partitions
                ),
            )
            for member, mine in assigned.items()
        }

    monkeypatch.setattr(StreamsPartitionAssignor, "assign_group", assign_with_standbys)


def wait_for_tasks(running: RunningApp, tasks: int, standby_tasks: int) -> None:
    def numbers() -> tuple[int, int]:
        figures = running.metrics()
        return figures["tasks"], figures["standby_tasks"]

    wait_until(lambda: numbers() == (tasks, standby_tasks), what=lambda: f"{numbers()}")
    running.wait_for("RUNNING", HANG_LIMIT_S)


def standby_state(topics: Topics, running: RunningApp) -> dict[str, int]:
    """Return the position of each standby of a worker by task."""
    loops = [thread.loop for thread in running._threads]
    return {each.task: each.position for loop in loops for each in loop.standby_progress}


def end_offsets(topics: Topics) -> dict[str, int]:
    """Return the end of each changelog partition by its task."""
    changelog = f"{topics.application}-counts-changelog"
    reader = Consumer({"bootstrap.servers": topics.servers, "group.id": f"{changelog}-ends"})
    try:
        return {
            f"0_{number}": reader.get_watermark_offsets(
                TopicPartition(changelog, number), HANG_LIMIT_S
            )[1]
            for number in range(PARTITIONS)
        }
    finally:
        reader.close()


def list_tasks(running: RunningApp) -> dict[str, str]:
    """Return the states of a worker's tasks by name."""
    return {name: state for each in running.health().threads for name, state in each.tasks.items()}


def count_changes(topics: Topics, tasks: Collection[str]) -> int:
    """Return how many committed records the changelogs of these tasks have."""
    changes = topics.committed(f"{topics.application}-counts-changelog")
    return sum(f"0_{each.partition}" in tasks for each in changes)


def wait_until_followed(topics: Topics, state: Path, tasks: Collection[str]) -> None:
    """Wait until the stores on disk of these tasks have reached the ends of their changelogs."""
    ends = {task: end for task, end in end_offsets(topics).items() if task in tasks}

    def find_positions() -> dict[str, int]:
        found = {
            task: read_stored_checkpoint(state / topics.application / task / "counts")
            for task in tasks
        }
        return {task: 0 if each is None else each.position for task, each in found.items()}

    wait_until(lambda: find_positions() == ends, what=lambda: f"{find_positions()} of {ends}")


def test_a_worker_that_takes_over_replays_nothing_that_its_standbys_have(
    topics: Topics, tmp_path: Path
) -> None:
    with start_counting(topics, tmp_path / "second") as second:
        wait_for_tasks(second, PARTITIONS, 0)
        with start_counting(topics, tmp_path / "first") as first:
            wait_until(lambda: second.metrics()["standby_tasks"] > 0, what="the standbys")
            topics.load(2_000)
            assert topics.wait_for_counts(2_000) == topics.truth
            ends = end_offsets(topics)
            followed = len(standby_state(topics, second))
            wait_for_tasks(second, PARTITIONS - followed, followed)

            def is_caught_up() -> bool:
                return all(p == ends[t] for t, p in standby_state(topics, second).items())

            wait_until(is_caught_up, what=lambda: f"{standby_state(topics, second)} of {ends}")
            # Counters are taken over from the thread that restores at the loop's next pass.
            wait_until(lambda: second.metrics()["standby_records"] > 0, what="standby records")
            before = second.metrics()["restored_records"]
            first.close()
        wait_for_tasks(second, PARTITIONS, 0)
        assert second.metrics()["restored_records"] == before
        topics.load(1_000)
        assert topics.wait_for_counts(3_000) == topics.truth
    assert stored_counts(tmp_path / "second", topics.application) == topics.truth


def test_a_killed_workers_standbys_go_on_from_where_they_were(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    with start_counting(topics, tmp_path / "first") as first:
        wait_for_tasks(first, PARTITIONS, 0)  # it leads the group
        worker = new_worker()
        worker.start()
        wait_until(lambda: first.metrics()["standby_tasks"] > 0, what="the other worker's tasks")
        topics.load(1_000)
        assert topics.wait_for_counts(1_000) == topics.truth
        followed = {name for name, state in list_tasks(first).items() if state == "RUNNING"}
        wait_until_followed(topics, tmp_path / "state", followed)
        worker.kill()
        before = count_changes(topics, followed)
        worker.start()
        topics.load(1_000)
        assert topics.wait_for_counts(2_000) == topics.truth
        wait_until_followed(topics, tmp_path / "state", followed)
        changes = count_changes(topics, followed)
        assert worker.finish()["standby_records"] == changes - before > 0
