"""Test the commands as a person types them: workers on the embedded broker, a broker alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import orjson
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator import EmbeddedBroker
from streams.processes.embedded import ensure_embedded_broker
from tests.integration.cluster import Command, Topics
from tests.processes import HANG_LIMIT_S, HOST, free_ports, wait_until

PROGRAM = """
from streams import App, serdes
app = App("{name}", commit_interval_ms=50, heartbeat_interval_ms=200)
stream = app.stream("{name}-in", key=serdes.string, value=serdes.string)
stream.group_by_key().count(store="counts").to_stream().to("{name}-out")
if __name__ == "__main__":
    app.run(workers=2)
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Provide a state directory whose embedded broker is ended with the test."""
    directory = tmp_path / "state"
    yield directory
    known = directory / "broker" / "process"
    if known.exists():
        os.kill(int(known.read_text().split()[1]), signal.SIGKILL)


@pytest.mark.parametrize("how", ["run", "script"])
def test_two_workers_find_the_embedded_broker_of_their_directory(
    how: str, state: Path, tmp_path: Path
) -> None:
    address = ensure_embedded_broker(state)
    assert ensure_embedded_broker(state) == address
    topics = Topics(address, f"cli-{how}")
    (tmp_path / "program.py").write_text(PROGRAM.format(name=topics.application))
    arguments = {
        "run": ["-m", "streams", "run", "program:app", "--workers", "2", "--state-dir", str(state)],
        "script": [str(tmp_path / "program.py")],
    }[how]
    command = Command(arguments, tmp_path, MILLRACE_STATE_DIR=str(state))
    try:
        topics.load(1_000)
        assert topics.wait_for_counts(1_000) == topics.truth
        slots = state / topics.application
        wait_until(
            lambda: len(list(slots.glob("process-*/id"))) == 2,
            what="two workers",
        )
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_a_killed_worker_is_started_again_and_none_outlives_its_watcher(
    state: Path, tmp_path: Path
) -> None:
    topics = Topics(ensure_embedded_broker(state), "watched")
    (tmp_path / "program.py").write_text(PROGRAM.format(name=topics.application))
    arguments = ["-m", "streams", "run", "program:app", "--workers", "2", "--state-dir", str(state)]
    command = Command(arguments, tmp_path)
    try:
        topics.load(500)
        topics.wait_for_counts(500)
        before = children_of(command.pid)
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: len(children_of(command.pid) - before) == 1, what="a new worker")
        topics.load(500)
        assert topics.wait_for_counts(1_000) == topics.truth
        assert "ended by SIGKILL: started again" in command.log_since(0)
        workers = children_of(command.pid)
        command.kill()
        wait_until(
            lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers),
            what="the workers to end",
        )
    finally:
        command.close()


def test_a_killed_embedded_broker_is_started_again_by_the_workers(
    state: Path, tmp_path: Path
) -> None:
    topics = Topics(ensure_embedded_broker(state), "revived")
    known = state / "broker" / "process"
    (tmp_path / "program.py").write_text(PROGRAM.format(name=topics.application))
    arguments = ["-m", "streams", "run", "program:app", "--workers", "2", "--state-dir", str(state)]
    command = Command(arguments, tmp_path)
    try:
        topics.load(500)
        topics.wait_for_counts(500)
        address, killed = known.read_text().split()
        os.kill(int(killed), signal.SIGKILL)
        wait_until(lambda: known.read_text().split()[1] != killed, what="another broker")
        assert known.read_text().split()[0] == address
        topics.load(500)
        assert topics.wait_for_counts(1_000) == topics.truth
        log = command.log_since(0)
        assert log.count(f"the embedded broker at {address} was gone: started again") == 1, log
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()


def test_a_worker_says_what_runs_and_logs_lines_of_json_to_its_end(
    state: Path, tmp_path: Path
) -> None:
    topics = Topics(ensure_embedded_broker(state), "said")
    (tmp_path / "program.py").write_text(PROGRAM.format(name=topics.application))
    options = ["--state-dir", str(state), "--log-format", "json", "--log-level", "info"]
    ports = ["--health-port", "0", "--health-host", "127.0.0.2"]
    command = Command(["-m", "streams", "run", "program:app", *options, *ports], tmp_path)
    try:
        topics.load(100)
        assert topics.wait_for_counts(100) == topics.truth
        command.stop()
        assert command.status == 0, command.log_tail()
        lines = [orjson.loads(line) for line in command.log_since(0).splitlines()]
    finally:
        command.close()
    first = lines[0]
    assert first["application_id"] == topics.application
    assert first["reads"] == [f"{topics.application}-in"]
    assert first["writes"] == [f"{topics.application}-out"]
    assert first["message"].endswith(f"http://127.0.0.2:{first['health_port']}/health")
    assert lines[-1]["message"] == "state PENDING_SHUTDOWN -> NOT_RUNNING"


def test_topics_are_created_from_the_command_line(state: Path) -> None:
    arguments = ["create-topics", "lines", "words", "--partitions", "3", "--state-dir", str(state)]
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-m", "streams", *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "lines, words on 127.0.0.1:" in result.stdout
    arguments = ["create-topics", "words", "--partitions", "7", "--state-dir", str(state)]
    arguments += ["--topic-setting", "retention.ms=1000"]
    result = subprocess.run(
        [sys.executable, "-m", "streams", *arguments], capture_output=True, text=True, check=True
    )
    assert (
        "words exists already, with 3 partitions and not 7: it stays as it is, and --topic-setting"
        in result.stderr
    )
    found = AdminClient({"bootstrap.servers": ensure_embedded_broker(state)}).list_topics(
        timeout=HANG_LIMIT_S
    )
    assert [len(found.topics[name].partitions) for name in ("lines", "words")] == [3, 3]


def test_the_command_of_a_refusal_works_where_it_is_pasted(state: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(name="pasted"))
    (tmp_path / "elsewhere").mkdir()
    paths = {**os.environ, "PYTHONPATH": str(Path.cwd()), "HOME": str(tmp_path / "home")}
    refused = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**paths, "MILLRACE_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    (command,) = re.findall("`(.*?)`", refused.stderr)
    assert "millrace create-topics pasted-in pasted-out --bootstrap-servers embedded" in command
    subprocess.run(["sh", "-c", command], cwd=tmp_path / "elsewhere", env=paths, check=True)
    found = AdminClient({"bootstrap.servers": ensure_embedded_broker(state)}).list_topics(
        timeout=HANG_LIMIT_S
    )
    assert {"pasted-in", "pasted-out"} <= found.topics.keys()
    assert not (tmp_path / "home").exists(), "a second broker was started in the default directory"


def test_the_broker_command_serves_until_sigterm_and_then_ends_well(tmp_path: Path) -> None:
    [metrics_port] = free_ports(1)
    options = ["--data", str(tmp_path / "data"), "--port", "0", "--metrics-port", str(metrics_port)]
    command = Command(["-m", "streams", "broker", *options], tmp_path)
    try:
        wait_until(lambda: "listening on" in command.log_since(0), what="the line")
        address = command.log_since(0).split()[-1]
        topics = Topics(address, "alone")
        topics.load(10)
        assert len(list(topics.committed(topics.source))) == 10
        with urlopen(f"http://{HOST}:{metrics_port}/metrics", timeout=10) as figures:
            assert b"millrace_shard_active" in figures.read()
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()


@pytest.mark.parametrize("command", [[], ["run"], ["broker"], ["create-topics"]])
def test_every_command_explains_itself(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "streams", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage" in result.stdout


def test_plan_asks_the_broker_what_the_old_version_has_made(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(name="planned"))
    begin = [sys.executable, "-m", "streams", "plan", "program:app"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*begin, *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
        )

    topics = {"planned-in": 2, "planned-out": 1, "planned-counts-changelog": 2}
    with EmbeddedBroker(topics=topics) as broker:
        servers = ("--bootstrap-servers", broker.bootstrap_servers)
        assert plan("--save", "saved.json", *servers).returncode == 0
        same = plan("--against", "saved.json", *servers)
        assert (same.returncode, same.stderr) == (0, "")
        assert same.stdout.startswith("nothing changes for state")
        looked = plan(*servers)
        assert (looked.returncode, looked.stderr) == (0, "")
        _, altered, cause = looked.stdout.splitlines()
        assert altered.startswith("  altered: planned-counts-changelog (cleanup.policy=delete, ")
        assert cause == "    cleanup.policy=delete -> compact: records would be lost"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_partitions([NewPartitions("planned-in", 3)])["planned-in"].result(HANG_LIMIT_S)
        wider = plan("--against", "saved.json", *servers)
    assert wider.returncode == 1
    assert "lost: store counts\n  partitions: 2 -> 3\n" in wider.stdout
