"""Test a query into a topic whose tasks fail and whose driver is killed: each row is there once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from streams.spark.sink.epochs import EpochSink, read_written_tally
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import IN_CI, Broker
from tests.processes import HANG_LIMIT_S, wait_until
from tests.spark.faulty import FAULTS, happened
from tests.spark.topics import Written
from tests.spark.written import made, values_of

RECORDS = 800
HANGS = 3


class Query:
    """Runs the query of `tests.spark.faulty` as a process."""

    def __init__(self, broker: Broker, source: str, target: str, directory: Path) -> None:
        self._servers = broker.bootstrap_servers
        self._target = target
        self._checkpoint = directory / "checkpoint"
        self._log = directory / "log"
        self.faults = directory / "faults"
        self.faults.mkdir()
        names = [self._servers, source, target, str(self._checkpoint), str(self.faults)]
        self._command = [sys.executable, "-m", "tests.spark.faulty", *names]

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=log, stderr=log, start_new_session=True, env=os.environ
            )

    def log(self) -> str:
        return self._log.read_text()[-6000:]

    def wrote(self, epoch: int, partition: int) -> bool:
        """Tell whether the epoch of this Spark partition is there."""
        metadata = self._checkpoint / "metadata"
        if not metadata.exists():
            return False
        name = f"millrace-sink-{json.loads(metadata.read_text())['id']}"
        sink = EpochSink(name, self._target)
        return read_written_tally(BrokerAccess(self._servers), sink, partition, epoch) is not None


@IN_CI
def test_tasks_that_fail_and_a_driver_that_is_killed_leave_each_row_once(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    source = Written(broker.bootstrap_servers, unique("from"), partitions=2)
    for begin in range(0, RECORDS, 100):
        numbers = range(begin, begin + 100)
        source.transaction([(n % 2, None, b"%d" % n) for n in numbers])
        source.transaction([(n % 2, None, b"aborted") for n in numbers[:20]], commit=False)
    target = made(broker.bootstrap_servers, unique("to"), partitions=2)
    query = Query(broker, source.topic, target, tmp_path)
    process = query.start()
    try:
        others = [partition for partition in range(4) if (HANGS, partition) not in FAULTS]

        def in_the_middle() -> bool:
            assert process.poll() is None, query.log()
            hangs = happened(query.faults, HANGS, 1).exists()
            return hangs and all(query.wrote(HANGS, partition) for partition in others)

        wait_until(in_the_middle, what=query.log)
        assert not query.wrote(HANGS, 1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the driver and its JVM: a group of its own
        process.wait(HANG_LIMIT_S)
    process = query.start()
    try:
        assert process.wait(HANG_LIMIT_S) == 0, query.log()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert all(happened(query.faults, *each).exists() for each in FAULTS)
    assert values_of(broker.bootstrap_servers, target) == sorted(str(n) for n in range(RECORDS))
