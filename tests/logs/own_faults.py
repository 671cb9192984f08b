"""Plant faults under a worker of ours, and return what it logged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import SETTINGS, EmbeddedProcess
from tests.kafka.secured.listeners import SecurityOptions
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import RealKafka
from tests.processes import ServerProcess, wait_until

OPTIONS = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
    "transaction_timeout_ms": 3_000,
    "commit_interval_ms": 200,
    "request_timeout_ms": 5_000,
    "stuck_after_ms": 2_500,
    "max_poll_interval_ms": 3_000,
}


class RecordedWorker(ServerProcess):
    """Represents a worker of the application `tests.logs.counting`, with its log."""

    def __init__(self, servers: str, *options: str, **settings: Any) -> None:
        super().__init__("recorded-worker")
        self.servers = servers
        self.state_dir = self.directory / "state"
        config = self.directory / "settings.toml"
        config.write_text(
            "".join(f"{name} = {value}\n" for name, value in {**OPTIONS, **settings}.items())
        )
        self._command = [
            *(sys.executable, "-m", "streams", "run", "tests.logs.counting:app"),
            *("--bootstrap-servers", servers, "--config", str(config), *options),
        ]

    def start(self) -> int:
        """Start the worker and return where its log begins."""
        return self.spawn([*self._command, "--state-dir", str(self.state_dir)])

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until the log has a text so often."""
        wait_until(
            lambda: self.log_since(0).count(text) >= count,
            what=lambda: f"no {text!r} in the log:\n{self.log_tail()}",
            timeout_s=120,
        )


def create_topics(servers: str) -> None:
    """Create the topics of the application."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, 2) for name in ("lines", "checked", "counts-by-key")]
    for each in admin.create_topics(topics).values():
        each.result()


def produce_lines(servers: str, *values: str, keys: int = 50) -> None:
    """Write records into the input, of several keys."""
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for number in range(keys):
        for value in values:
            producer.produce("lines", value, f"key-{number}")
    producer.flush(30)


def produce_for(servers: str, seconds: float) -> None:
    """Write some records all the time for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        produce_lines(servers, "line", keys=5)
        time.sleep(0.1)


@contextmanager
def run_worker(
    kafka: bool, *options: str, **settings: Any
) -> Iterator[tuple[RecordedWorker, EmbeddedProcess | RealKafka]]:
    """Run a broker and a worker whose tasks run, and end both."""
    broker = RealKafka(SETTINGS) if kafka else EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        create_topics(broker.bootstrap_servers)
        worker = RecordedWorker(broker.bootstrap_servers, *options, **settings)
        try:
            worker.start()
            produce_lines(broker.bootstrap_servers, "line")
            worker.wait_for("-> RUNNING")
            produce_for(broker.bootstrap_servers, 1)
            yield worker, broker
        finally:
            worker.end(signal.SIGKILL)
            worker.close()
    finally:
        broker.close()


def find_transactional_id(servers: str) -> str:
    """Return the transactional id of the worker's producer."""
    asked = ("txn", "list", "--all", "--json", "--bootstrap-servers", servers)
    listed = subprocess.run(
        [sys.executable, "-m", "streams", *asked],
        capture_output=True,
        text=True,
        check=True,
    )
    return str(json.loads(listed.stdout.splitlines()[0])["transactional_id"])


def fence_worker(*, kafka: bool = True, log_format: str = "text") -> str:
    """Let a second producer take the worker's transactional id, twice."""
    with run_worker(kafka, "--log-format", log_format) as (worker, broker):
        servers = broker.bootstrap_servers
        name = find_transactional_id(servers)
        for count in (1, 2):
            other = Producer({"bootstrap.servers": servers, "transactional.id": name})
            other.init_transactions(30)
            produce_lines(servers, "line")
            worker.wait_for("starts over", count)
            produce_for(servers, 2)
        worker.stop()
        return worker.log_since(0)


def stop_worker(*, kafka: bool = True) -> str:
    """Stop the process for longer than its session and its transaction's time-out."""
    with run_worker(kafka, commit_interval_ms=1_000) as (worker, broker):
        produce_for(broker.bootstrap_servers, 1.3)
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            time.sleep(9)
        finally:
            os.kill(worker.pid, signal.SIGCONT)
        produce_for(broker.bootstrap_servers, 3)
        worker.wait_for("starts over")
        time.sleep(5)
        worker.stop()
        return worker.log_since(0)


def time_out_transaction(*, kafka: bool = True) -> str:
    """Let a step take longer than the time-out of its transaction."""
    with run_worker(kafka, max_poll_interval_ms=60_000) as (worker, broker):
        produce_lines(broker.bootstrap_servers, "line", "slow", keys=1)
        worker.wait_for("starts over")
        time.sleep(6)
        worker.stop()
        return worker.log_since(0)


def kill_broker(*, kafka: bool = True) -> str:
    """Kill the broker, and start it again."""
    with run_worker(kafka) as (worker, broker):
        broker.kill()
        worker.wait_for("no broker answers")
        time.sleep(6)
        broker.restart()
        worker.wait_for("a broker answers again")
        produce_for(broker.bootstrap_servers, 2)
        worker.stop()
        return worker.log_since(0)


def delete_changelog(*, kafka: bool = True) -> str:
    """Delete the changelog while the worker is stopped, and start it without its state."""
    with run_worker(kafka) as (worker, broker):
        worker.stop()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for each in admin.delete_topics(["counting-counts-changelog"]).values():
            each.result()
        shutil.rmtree(worker.state_dir)
        worker.start()
        wait_until(lambda: worker.ended is not None, what="the worker goes on", timeout_s=90)
        return worker.log_since(0)


def damage_store(*, kafka: bool = True) -> str:
    """Overwrite the files of the stores while the worker is stopped."""
    with run_worker(kafka) as (worker, broker):
        worker.stop()
        for path in worker.state_dir.rglob("*.sst"):
            path.write_bytes(b"\x00" * path.stat().st_size)
        for path in worker.state_dir.rglob("MANIFEST-*"):
            path.write_bytes(b"\xff" * path.stat().st_size)
        worker.start()
        produce_for(broker.bootstrap_servers, 1)
        worker.wait_for("is rebuilt")
        worker.wait_for("is restored")
        worker.stop()
        return worker.log_since(0)


def poison_record(*, kafka: bool = True, log_format: str = "json") -> str:
    """Write a record that the step can't process."""
    handler = ("--uncaught-exception-handler", "replace_thread")
    with run_worker(kafka, "--log-format", log_format, *handler) as (worker, broker):
        produce_lines(broker.bootstrap_servers, "poison", keys=1)
        worker.wait_for("is replaced", 2)
        worker.stop()
        return worker.log_since(0)


def block_step(*, kafka: bool = True) -> str:
    """Let a step take longer than stuck_after_ms and max_poll_interval_ms."""
    with run_worker(kafka) as (worker, broker):
        produce_lines(broker.bootstrap_servers, "slow", keys=1)
        worker.wait_for("leaves group")
        produce_for(broker.bootstrap_servers, 3)
        time.sleep(4)
        worker.stop()
        return worker.log_since(0)


def refuse_credentials() -> str:
    """Start a worker with a wrong password."""
    broker = SecuredKafka(SETTINGS, SecurityOptions(authorizer=False))
    try:
        broker.start()
        create_topics(broker.bootstrap_servers)
        connection = broker.directory / "connection.toml"
        connection.write_text(
            '"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"\n'
            '"sasl.username" = "guest"\n"sasl.password" = "wrong"\n'
        )
        worker = RecordedWorker(
            broker.listener_servers("SASL_PLAINTEXT"), "--connection", str(connection)
        )
        try:
            worker.start()
            wait_until(lambda: worker.ended is not None, what="the worker goes on", timeout_s=90)
            return worker.log_since(0)
        finally:
            worker.end(signal.SIGKILL)
            worker.close()
    finally:
        broker.close()


def fill_disk(*, kafka: bool = True) -> str:
    """Fill the file system of the state directory, a tmpfs, which needs the rights to mount one."""
    mounted = Path(tempfile.mkdtemp(prefix="millrace-full-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", mounted], check=True)
    try:
        with run_worker(kafka) as (worker, broker):
            worker.stop()
            shutil.rmtree(worker.state_dir, ignore_errors=True)
            worker.state_dir = mounted / "state"
            worker.start()
            worker.wait_for("-> RUNNING", 2)
            produce_for(broker.bootstrap_servers, 1)
            with (mounted / "ballast").open("wb") as ballast:
                try:
                    while True:
                        ballast.write(bytes(1 << 16))
                        ballast.flush()
                except OSError:
                    pass
            until = time.monotonic() + 60
            while worker.ended is None and time.monotonic() < until:
                produce_lines(broker.bootstrap_servers, "line", keys=2_000)
                time.sleep(0.2)
            return worker.log_since(0)
    finally:
        subprocess.run(["umount", mounted], check=True)
        mounted.rmdir()


FAULTS: dict[str, Callable[[], str]] = {  # each returns the worker's log
    "ours-fenced": fence_worker,
    "ours-fenced-json": lambda: fence_worker(log_format="json"),
    "ours-stopped": stop_worker,
    "ours-transaction-timed-out": time_out_transaction,
    "ours-broker-killed": lambda: kill_broker(kafka=False),
    "ours-changelog-deleted": delete_changelog,
    "ours-store-damaged": damage_store,
    "ours-poison-record": poison_record,
    "ours-slow-step": block_step,
    "ours-disk-full": fill_disk,
    "ours-wrong-credentials": refuse_credentials,
}
