"""Test an application that assigns its tasks itself (KIP-924), with two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams import StreamsError, TaskAssignmentError
from streams.processes.running import RunningApp
from streams.task_assignment import ApplicationState, KafkaStreamsAssignment
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.running import start_counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

RECORDS = 500


def assign_to_main(state: ApplicationState) -> list[KafkaStreamsAssignment]:
    """Give all tasks to one client, to the one with the tag `main` first, and copies to others."""
    clients = state.kafka_streams_states
    main = min(clients, key=lambda name: (clients[name].client_tags["role"] != "main", name))
    return [
        KafkaStreamsAssignment(
            name, dict.fromkeys(state.all_tasks, "active" if name == main else "standby")
        )
        for name in clients
    ]


def wait_for_tasks(running: RunningApp, tasks: int, standby_tasks: int) -> None:
    def numbers() -> tuple[int, int]:
        figures = running.metrics()
        return figures["tasks"], figures["standby_tasks"]

    wait_until(lambda: numbers() == (tasks, standby_tasks), what=lambda: f"{numbers()}")
    running.wait_for("RUNNING", HANG_LIMIT_S)


def test_tasks_run_where_the_applications_own_assignor_says(topics: Topics, tmp_path: Path) -> None:
    """Check that the tasks go to the main worker as it comes, and back as it ends: counts exact."""

    def start(role: str) -> RunningApp:
        return start_counting(
            topics,
            tmp_path / role,
            task_assignor=assign_to_main,
            client_tags={"role": role},
            num_stream_threads=2,
        )

    topics.load(RECORDS)
    with start("spare") as spare:
        wait_for_tasks(spare, PARTITIONS, 0)
        assert topics.wait_for_counts(RECORDS) == topics.truth
        with start("main") as main:
            wait_for_tasks(main, PARTITIONS, 0)
            wait_for_tasks(spare, 0, PARTITIONS)
            topics.load(RECORDS)
            assert topics.wait_for_counts(2 * RECORDS) == topics.truth
        wait_for_tasks(spare, PARTITIONS, 0)
        topics.load(RECORDS)
        assert topics.wait_for_counts(3 * RECORDS) == topics.truth
    assert topics.counts() == topics.truth


def test_an_assignment_that_cant_be_used_ends_the_leader_with_the_errors_name(
    topics: Topics, tmp_path: Path
) -> None:
    def assign(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        return [KafkaStreamsAssignment("nobody")]

    running = start_counting(topics, tmp_path, task_assignor=assign)
    running.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(StreamsError, match="can't be used: MISSING_PROCESS_ID: client"):
        running.close()


def test_an_assignor_that_cant_assign_ends_all_workers(topics: Topics, tmp_path: Path) -> None:
    def assign(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        if len(state.kafka_streams_states) == 2:
            raise TaskAssignmentError("one is enough")
        return [
            KafkaStreamsAssignment(name, dict.fromkeys(state.all_tasks, "active"))
            for name in state.kafka_streams_states
        ]

    one = start_counting(topics, tmp_path / "one", task_assignor=assign)
    wait_for_tasks(one, PARTITIONS, 0)
    two = start_counting(topics, tmp_path / "two", task_assignor=assign)
    for worker in (one, two):
        worker.wait_for("ERROR", HANG_LIMIT_S)
        with pytest.raises(TaskAssignmentError, match="one is enough"):
            worker.close()
