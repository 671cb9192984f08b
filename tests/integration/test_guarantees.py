"""Test the two guarantees: one follows the other after a crash, and while the group runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import TaskMigrated
from streams.runtime.clients import KafkaClientSupplier, encode_group_metadata
from streams.runtime.threads.commit import CommitStep
from streams.settings.config import load_config
from tests.brokers import IN_CI
from tests.integration.cluster import Topics, Worker, stored_counts

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

RECORDS = 2_000
NewWorker = Callable[..., Worker]
V1, V2, AT_LEAST_ONCE = "exactly_once", "exactly_once_v2", "at_least_once"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("before", "after"), [(V1, V2), (V2, V1)])
def test_a_worker_killed_with_offsets_sent_goes_on_with_either_guarantee(
    topics: Topics,
    new_worker: NewWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
) -> None:
    """Check the successor of a killed worker.

    It does not take the transactional id over: it waits for the open transaction.
    """
    monkeypatch.setenv("MILLRACE_TRANSACTION_TIMEOUT_MS", "3000")
    topics.load(RECORDS)
    worker = new_worker(guarantee=before)
    worker.start(kill_at=CommitStep.OFFSETS_SENT.name, kill_commit=4)
    worker.load_until_killed(topics)
    worker = new_worker(guarantee=after)
    worker.start()
    topics.wait_for_counts(topics.loaded)
    worker.finish()
    assert topics.counts() == topics.truth
    assert stored_counts(tmp_path / "state", topics.application) == topics.truth


def wait_until_it_runs(worker: Worker) -> None:
    worker.wait_until_ready(lambda: "-> RUNNING" in worker.log_since(0))


def test_a_rolling_restart_switches_the_guarantee_while_the_group_runs(
    topics: Topics, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Run workers of both guarantees beside each other.

    Those that are exactly once are killed on machine one; at least once nothing is doubled either
    as long as it ends in order.
    """
    machines = {name: tmp_path / name for name in ("one", "two")}
    workers = {name: new_worker(guarantee=V2, state=name) for name in machines}
    for worker in workers.values():
        worker.start()
    topics.load(RECORDS)
    topics.wait_for_counts(topics.loaded)
    for name, guarantee in (
        ("one", V1),
        ("two", V1),
        ("one", V2),
        ("two", AT_LEAST_ONCE),
        ("two", V2),
    ):
        topics.load(RECORDS)
        if name == "one":
            workers[name].kill()
        else:
            workers[name].finish()
        workers[name] = new_worker(guarantee=guarantee, state=name)
        workers[name].start()
        wait_until_it_runs(workers[name])
        topics.load(RECORDS)
        topics.wait_for_counts(topics.loaded)
    for worker in workers.values():
        worker.finish()
    assert topics.counts() == topics.truth


def test_only_an_offset_shows_the_group_who_writes(topics: Topics, new_worker: NewWorker) -> None:
    """Check why every transaction carries an offset of each task.

    Without one a stranger's transaction is committed, by Kafka too.
    """
    worker = new_worker()
    worker.start()
    topics.load(100)
    topics.wait_for_counts(topics.loaded)
    config = load_config(bootstrap_servers=topics.servers)
    clients = KafkaClientSupplier(topics.application, config, topics.servers)
    stale = encode_group_metadata(topics.application, 0, "of-an-old-generation", None)
    committed = [(Partition(topics.source, 0), OffsetAndMetadata(0, ""))]
    for offsets in ([], committed):
        zombie = clients.create_producer(f"{topics.application}-zombie")
        zombie.begin_transaction()
        zombie.produce(topics.target, b"stray", b"of a punctuation", 0)
        zombie.flush()
        if offsets:
            with pytest.raises(TaskMigrated, match=r"nknown member|generation"):
                zombie.send_offsets_to_transaction(offsets, stale)
            zombie.try_abort_and_close()
        else:
            zombie.send_offsets_to_transaction(offsets, stale)
            zombie.commit_transaction()
            zombie.try_abort_and_close()
        strays = [pair for pair in topics.committed() if pair.value == b"stray"]
        assert len(strays) == 1, "the one without an offset, and it alone"
    worker.finish()
