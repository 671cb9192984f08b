"""Test workers that are paused, that remain in their group, and what their handles tell."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streams.errors import ConfigError, StreamsError
from streams.processes.running import RunningApp
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.running import start_counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def wait_for_figure(name: str, count: int, *workers: RunningApp) -> None:
    def figure() -> int:
        return sum(each.metrics()[name] for each in workers)

    wait_until(lambda: figure() == count, what=lambda: f"{name} {figure()}")


def wait_for_tasks(running: RunningApp) -> None:
    wait_until(lambda: running.metrics()["tasks"] > 0, what="no task has moved")


def sum_committed(running: RunningApp) -> int:
    (thread,) = running.metadata_for_local_threads()
    offsets = [each.committed_offsets for each in thread.active_tasks]
    return sum(offset for each in offsets for offset in each.values())


def test_a_paused_worker_keeps_its_tasks_and_goes_on_later(topics: Topics, tmp_path: Path) -> None:
    with start_counting(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(10)
        wait_for_figure("records", 10, running)
        running.pause()
        wait_until(lambda: sum_committed(running) >= 10, what=lambda: f"{sum_committed(running)}")
        topics.load(10)
        time.sleep(1)  # twenty commit intervals: records would have been processed by then
        (thread,) = running.metadata_for_local_threads()
        assert (running.is_paused, running.state) == (True, "RUNNING")
        assert running.metrics()["records"] == 10
        assert (thread.state, len(thread.active_tasks)) == ("RUNNING", PARTITIONS)
        (lags,) = running.all_local_store_partition_lags().values()
        assert {p: each.lag for p, each in lags.items()} == dict.fromkeys(range(PARTITIONS), 0)
        running.resume()
        wait_for_figure("records", 20, running)
        assert not running.is_paused


def test_the_tasks_of_a_worker_that_remains_wait_for_it(topics: Topics, tmp_path: Path) -> None:
    with start_counting(topics, tmp_path / "other") as other:
        other.wait_for("RUNNING", HANG_LIMIT_S)
        for _ in range(2):
            running = start_counting(topics, tmp_path / "this")
            wait_for_tasks(running)
            wait_for_figure("tasks", PARTITIONS, running, other)
            running.close(leave_group=False)
            time.sleep(1)  # five heartbeats, by which others learn of a member that has left
            assert 0 < other.metrics()["tasks"] < PARTITIONS


def test_threads_are_added_and_removed_while_records_come(topics: Topics, tmp_path: Path) -> None:
    with start_counting(topics, tmp_path, num_stream_threads=2) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert running.add_worker_thread() == "thread 2"
        topics.load(100)
        wait_for_figure("records", 100, running)
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert running.remove_worker_thread() == "thread 2"
        topics.load(100)
        assert running.remove_worker_thread() == "thread 1"
        with pytest.raises(ConfigError, match="a worker has at least one thread"):
            running.remove_worker_thread()
        topics.load(100)
        wait_for_figure("tasks", PARTITIONS, running)
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert [each.name for each in running.metadata_for_local_threads()] == ["thread 0"]
        assert running.add_worker_thread() == "thread 1"
        assert topics.wait_for_counts(300) == topics.truth
    with pytest.raises(StreamsError, match="NOT_RUNNING"):
        running.add_worker_thread()
