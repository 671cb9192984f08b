"""Test that the embedded broker of a state directory is found and stopped, and its data stay."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from typer.testing import CliRunner, Result

from streams import App, serdes
from streams.commands.root import cli


def call(state_dir: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--state-dir", str(state_dir)])


def test_the_embedded_broker_is_stopped_once_no_worker_runs_and_its_data_stay(
    tmp_path: Path,
) -> None:
    missing = call(tmp_path, "broker", "status")
    assert (missing.exit_code, "no embedded broker runs" in missing.output) == (1, True)
    assert call(tmp_path, "broker", "stop").exit_code == 2
    assert not (tmp_path / "broker").exists(), "nothing was started or made"
    assert call(tmp_path, "create-topics", "in", "--partitions", "1").exit_code == 0
    found = json.loads(call(tmp_path, "broker", "status", "--json").stdout)
    assert found["is_running"]
    assert (found["workers"], found["is_answering"]) == ([], True)
    os.kill(found["process_id"], signal.SIGSTOP)
    try:
        hung = call(tmp_path, "broker", "status")
    finally:
        os.kill(found["process_id"], signal.SIGCONT)
    assert hung.exit_code == 1
    assert f"`kill -CONT {found['process_id']}` lets it go on" in hung.output
    app = App("counts", state_dir=tmp_path)
    app.stream("in", key=serdes.string, value=serdes.string).group_by_key().count(store="counts")
    with app.start() as running:
        running.wait_for("RUNNING")
        assert "counts/process-0" in call(tmp_path, "broker", "status").output
        refused = call(tmp_path, "broker", "stop")
        assert refused.exit_code == 2
        assert "workers run that would start the embedded broker again" in refused.output
        os.kill(found["process_id"], 0)
    stopped = call(tmp_path, "broker", "stop")
    assert stopped.exit_code == 0
    assert found["address"] in stopped.output
    assert call(tmp_path, "broker", "status").exit_code == 1
    assert "no embedded broker runs" in call(tmp_path, "broker", "stop").output
    away = call(tmp_path, "topics", "list", "--bootstrap-servers", found["address"])
    port = found["address"].rpartition(":")[2]
    assert f"broker --data {tmp_path}/broker/data --port {port}`" in away.output
    listed = call(tmp_path, "create-topics", "in", "--partitions", "2")
    assert "in exists already, with 1 partition" in listed.output
    assert call(tmp_path, "broker", "stop").exit_code == 0


def test_a_broker_without_a_directory_is_refused() -> None:
    refused = CliRunner().invoke(cli, ["broker"])
    assert refused.exit_code == 2
    assert "a broker needs --data DIR" in refused.output
