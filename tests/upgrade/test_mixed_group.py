"""Test that workers of this commit and of the last one without cooperative rebalances form a group.

That one stops all of its tasks before it joins, and as a leader takes tasks away without revoking
them. Its tree is taken out of git, which a shallow clone can't.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import brokers
from tests.brokers import Broker
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.integration.flow import Flow

EARLIER = "3dda4039"
"""The last commit whose members stop their tasks before they join."""
EVERYTHING = set(range(PARTITIONS))


class EarlierWorker(Worker):
    """Runs a worker of an earlier tree."""

    tree: Path

    def start(self, *more: str, kill_at: str | None = None, kill_commit: int = 1) -> None:
        # Without -P the present tree would be found first.
        command = [sys.executable, "-P", *self._command[1:], *more]
        self.spawn(command, {"PYTHONPATH": str(self.tree)})


@pytest.fixture(scope="module")
def earlier_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = subprocess.run(["git", "archive", EARLIER], check=False, capture_output=True)
    if found.returncode:
        pytest.skip(f"this clone has no commit {EARLIER}")  # also in CI, where it may be shallow
    path = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as tree:
        tree.extractall(path, filter="data")
    return path


@pytest.fixture
def topics(broker: Broker, unique: Callable[[str], str]) -> Topics:
    return Topics(broker.bootstrap_servers, unique("app"))


@pytest.fixture
def start_worker(
    topics: Topics, earlier_tree: Path, tmp_path: Path
) -> Iterator[Callable[..., Worker]]:
    """Return a function that starts a worker of either release on a machine of its own."""
    made: list[Worker] = []

    def start(release: type[Worker], machine: str, kind: str = "copy") -> Worker:
        worker = release(
            topics,
            tmp_path / machine,
            kind=kind,
            guarantee="exactly_once_v2",
            session_timeout_ms=10_000,
        )
        if isinstance(worker, EarlierWorker):
            worker.tree = earlier_tree
        made.append(worker)
        worker.start()
        return worker

    yield start
    for worker in made:
        worker.end(signal.SIGABRT)  # what runs after a failure says where it is
        print(worker.log_tail(100))
        worker.close()


@brokers.IN_CI
@pytest.mark.parametrize("kinds", [(EarlierWorker, Worker), (Worker, EarlierWorker)])
def test_a_rolling_restart_leads_from_one_release_to_the_other(
    topics: Topics,
    start_worker: Callable[..., Worker],
    kinds: tuple[type[Worker], type[Worker]],
) -> None:
    """Test upgrade and downgrade: in each, both kinds lead a group that has the other kind."""
    before, after = kinds
    with Flow(topics) as flow:
        workers = [start_worker(before, machine) for machine in "ab"]
        flow.wait_for_more(EVERYTHING)
        for number, machine in enumerate("ab"):
            workers[number].stop()
            flow.wait_for_more(EVERYTHING)
            workers[number] = start_worker(after, machine)
            flow.wait_for_more(EVERYTHING)
        assert workers[0].finish()["records"] > 0
        flow.wait_for_more(EVERYTHING)
    assert workers[1].finish()["records"] > 0
    flow.check()


@brokers.IN_CI
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kinds", [(EarlierWorker, Worker), (Worker, EarlierWorker)])
def test_state_goes_from_one_release_to_the_other_in_a_rolling_restart(
    topics: Topics,
    start_worker: Callable[..., Worker],
    kinds: tuple[type[Worker], type[Worker]],
) -> None:
    """Test that each release goes on with the counts of the other, from directory or changelog."""

    def count_more() -> None:
        topics.load(600)
        assert topics.wait_for_counts(topics.loaded) == topics.truth

    before, after = kinds
    workers = [start_worker(before, machine, "count") for machine in "ab"]
    count_more()
    for number, machine in enumerate("ab"):
        workers[number].stop()
        count_more()
        workers[number] = start_worker(after, machine, "count")
        count_more()
    assert workers[0].finish()["records"] > 0
    count_more()
    assert workers[1].finish()["records"] > 0
