"""Test that a worker and the doctor name a full disk of a broker, and a removed state directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from streams import App, serdes
from streams.commands.root import cli
from streams.processes.embedded import build_broker_path
from streams.processes.running import RunningApp
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def find_complaint(point: str, *options: str) -> str:
    """Return what the doctor says of a point that is wrong, nothing if it is not."""
    result = CliRunner().invoke(cli, ["doctor", "--json", *options])
    findings = json.loads(result.stdout)["findings"]
    wrong = [each for each in findings if each["verdict"] == "error" and each["point"] == point]
    return str(wrong[0]["what"]) if wrong else ""


def build_app(name: str, state: Path, servers: str) -> App:
    app = App(name, state_dir=state, commit_interval_ms=50, bootstrap_servers=servers)
    lines = app.stream(f"{name}-in", key=serdes.string, value=serdes.string)
    lines.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return app


def sum_counts(running: RunningApp) -> int:
    return sum(count for _, count in running.store("counts").all())


@pytest.fixture
def broker_disk(tmp_path: Path) -> Iterator[Path]:
    """Provide a file system in memory of 24 MB for the embedded broker of a state directory."""
    path = build_broker_path(tmp_path)
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems can be mounted by root only")
    yield path
    CliRunner().invoke(cli, ["broker", "stop", "--state-dir", str(tmp_path)])
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def produce_records(servers: str, count: int) -> Producer:
    """Give records to a producer that tries for long, and return it."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(count):
        producer.produce("full-in", "value", f"key-{number % 7}")
    producer.poll(0)
    return producer


def test_a_full_disk_of_the_embedded_broker_is_named_and_loses_nothing(
    broker_disk: Path, tmp_path: Path
) -> None:
    runner = CliRunner()
    options = ["--state-dir", str(tmp_path)]
    created = runner.invoke(cli, ["create-topics", "full-in", "full-out", *options])
    assert created.exit_code == 0, created.output
    with build_app("full", tmp_path, "embedded").start(handle_signals=False) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        produce_records(running.bootstrap_servers, 60).flush(HANG_LIMIT_S)
        wait_until(lambda: sum_counts(running) == 60, what="the first records")
        filler = broker_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        waiting = produce_records(running.bootstrap_servers, 30_000)
        wait_until(
            lambda: any("broker's data is full" in each for each in running.health().why),
            what="the worker to name the disk",
        )
        assert not running.health().healthy
        wait_until(
            lambda: str(broker_disk) in find_complaint("disks of brokers", *options),
            what="the doctor to name the disk",
        )
        filler.unlink()
        assert waiting.flush(HANG_LIMIT_S) == 0
        wait_until(lambda: sum_counts(running) == 30_060, what="all records, each once")
        wait_until(lambda: running.health().healthy, what="the worker to be healthy")


def test_a_state_directory_that_is_removed_under_a_worker_is_named(
    topics: Topics, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    app = build_app(topics.application, state, topics.servers)
    with app.start(handle_signals=False) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        shutil.rmtree(state / topics.application)
        options = ["--bootstrap-servers", topics.servers, "--state-dir", str(state)]
        said = find_complaint("state directory", topics.application, *options)
        assert f"process {os.getpid()} runs in {state / topics.application}" in said
        wait_until(
            lambda: any("was removed" in each for each in running.health().why),
            what="the worker to name its directory",
        )
