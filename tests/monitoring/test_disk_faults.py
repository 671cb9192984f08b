"""Provoke faults of the broker's disk, and a restore: the alerts that should fire do, alone.

The disk is a small one of its own, which is truly slow and truly full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.monitoring.loop_disk import LoopDisk
from tests.monitoring.monitored import Monitored

DISK_BYTES = 256 << 20
WRITES_PER_SECOND = 1
RESTORED_WORDS = 6_000
"""A third of them are the stopped worker's; `SLOW_RESTORES` restores 33 a second."""


@pytest.fixture(scope="module")
def disk() -> Iterator[LoopDisk]:
    with ExitStack() as exits:
        yield LoopDisk(exits, DISK_BYTES)


@pytest.fixture(scope="module")
def monitored(disk: LoopDisk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """Yield an application without standby tasks, whose broker flushes to the disk in intervals."""
    with ExitStack() as exits, pytest.MonkeyPatch.context() as patched:
        patched.setenv("SLOW_RESTORES", "1")
        yield Monitored(
            tmp_path_factory.mktemp("monitored"),
            exits,
            broker_data_path=disk.path / "data",
            broker_settings={"log.flush.interval.ms": "200"},
        )


def test_the_disk_of_the_broker_is_slow(monitored: Monitored, disk: LoopDisk) -> None:
    monitored.wait_for_alerts()

    def load() -> None:
        monitored.produce(*["word"] * 20)

    with disk.limit_writes(monitored.broker.pid, WRITES_PER_SECOND):
        monitored.provoke_alerts(load, "MillraceLogFlushSlow")
    monitored.wait_for_alerts()


def test_the_disk_of_the_broker_is_full(monitored: Monitored, disk: LoopDisk) -> None:
    monitored.wait_for_alerts()
    monitored.produce(*["slow"] * 1_000)
    filling = disk.fill()
    # The threads wait in calls of the broker, which can't write the end of a transaction either.
    monitored.wait_for_alerts(
        "MillraceBrokerDiskFull",
        "MillraceThreadStuck",
        "MillraceTransactionHangs",
        "MillraceWorkerUnhealthy",
    )
    assert {"broker's disk, free", "workers"} <= monitored.list_marked()
    filling.unlink()
    monitored.wait_for_alerts()


def test_stores_are_restored_for_long(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    monitored.produce(*["word"] * RESTORED_WORDS)
    monitored.wait_until_processed()
    stopped = monitored.workers[0]
    stopped.stop()  # it leaves the group: the others restore its tasks
    monitored.wait_for_alerts("MillraceWorkerDown", "MillraceRestoreSlow")
    assert {"workers", "left to restore"} <= monitored.list_marked()
    stopped.spawn_worker()
    stopped.wait_until_running()
    monitored.wait_for_alerts()
