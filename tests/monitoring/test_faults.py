"""Provoke faults in a running application: the alerts that should fire do, and no others.

Those that take the longest, or a file system of their own, are here, in `test_disk_faults`, in
`test_load_faults` and in `test_record_and_query_faults`; `make ci-full` runs them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer

from tests.monitoring.monitored import Monitored

DISK_BYTES = 256 << 20
OPEN_S = 45
"""Longer than an open transaction may be at this scale: 15 minutes are 15 seconds."""
SLOW_WORDS, SLOW_S = 15, 0.03


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """Yield an application with standby tasks that are slow, on a broker with a small disk."""
    size = f"size={DISK_BYTES}"
    with ExitStack() as exits, pytest.MonkeyPatch.context() as patched:
        disk = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="millrace-disk-")))
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", disk], check=False)
        if mounted.returncode:
            pytest.skip("a file system in memory can't be mounted")
        exits.callback(lambda: subprocess.run(["umount", "-l", disk], check=True))
        patched.setenv("SLOW_STANDBYS", "1")
        yield Monitored(
            tmp_path_factory.mktemp("monitored"),
            exits,
            broker_data_path=disk / "data",
            worker_settings=["num_standby_replicas=1"],
        )


def test_one_key_has_most_of_the_work(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    pause = Event()

    def load() -> None:
        """Keep one task busy, without a lag; the others have never had a record."""
        monitored.produce(*["slow"] * SLOW_WORDS, key="k")
        pause.wait(SLOW_WORDS * SLOW_S)

    monitored.provoke_alerts(load, "MillraceTasksSkewed")
    monitored.wait_for_alerts()


def test_a_transaction_hangs(monitored: Monitored) -> None:
    producer = Producer(
        {
            "bootstrap.servers": monitored.broker.bootstrap_servers,
            "transactional.id": "forgotten",
            "transaction.timeout.ms": OPEN_S * 1_000,
        }
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("words-out", value="never committed")
    producer.flush()
    monitored.wait_for_alerts("MillraceTransactionHangs")
    monitored.wait_for_alerts()  # the coordinator has aborted it


def test_the_disk_of_the_broker_is_nearly_full(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    filling = Path(monitored.broker.data_dir).parent / "filling"
    filling.write_bytes(b"x" * (monitored.read_broker_disk_free_bytes() - DISK_BYTES // 20))
    monitored.wait_for_alerts("MillraceBrokerDiskFull")
    filling.unlink()
    monitored.wait_for_alerts()


def test_standby_tasks_lag(monitored: Monitored) -> None:
    monitored.produce(*["word"] * 120_000)
    monitored.wait_for_alerts("MillraceStandbyBehind")
