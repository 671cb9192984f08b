"""Test that each command prints with --json what its JSON Schema says, and nothing else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from typer.testing import CliRunner

from streams import App
from streams.commands.json_outputs import ONE_OBJECT, OUTPUTS
from streams.commands.root import COMMANDS, cli, load_command
from streams.processes.embedded import ensure_embedded_broker
from tests.json_outputs import check_json_output
from tests.processes import HANG_LIMIT_S, wait_until

PROGRAM = """
from streams import App, serdes, windows
app = App("shown", commit_interval_ms=20, ledger=True, health_port=0, query_port=0)
words = app.stream("shown-in", key=serdes.string, value=serdes.string).group_by_key()
words.count(store="counts").to_stream().to("shown-out")
words.windowed_by(windows.tumbling(60_000)).count(store="by-minute")
"""


class Shown:
    """Runs commands with --json, and checks what they print."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.checked: set[str] = set()

    def check(self, command: str, *arguments: str, expected_status: int = 0) -> list[Any]:
        """Run a command, check its output, and return the lines, or the object, that it prints."""
        is_elsewhere = command in ("new", "acls", "logs analyze")
        place = () if is_elsewhere else ("--state-dir", str(self.state_dir))
        words = [*command.split(), *arguments, *place, "--json"]
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == expected_status, (words, result.output)
        lines = [result.stdout] if command in ONE_OBJECT else result.stdout.splitlines()
        found = [json.loads(line) for line in lines]
        assert found, words
        for each in found:
            check_json_output(command, each)
        self.checked.add(command)
        return found


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    (tmp_path / "shown_app.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MILLRACE_STATE_DIR", str(tmp_path / "state"))
    yield Shown(tmp_path / "state")
    known = tmp_path / "state" / "broker" / "process"
    if known.exists():  # the test has failed
        os.kill(int(known.read_text().split()[1]), signal.SIGKILL)


def test_every_command_prints_what_its_schema_says(shown: Shown, tmp_path: Path) -> None:
    program = "shown_app:app"
    shown.check("broker status", expected_status=1)
    servers = ensure_embedded_broker(shown.state_dir)
    shown.check("new", "project")
    shown.check("acls", program)
    shown.check("create-topics", "shown-in", "shown-out", "extra")
    shown.check("topics delete", "extra", "--yes")
    shown.check("produce", "shown-in", "a:1", "b:2", "--key-separator", ":", "--header", "h=1")
    app: App = __import__("shown_app").app
    with app.start(handle_signals=False) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(lambda: running.store("counts").get("b") == 1, what="the count of b")
        (report,) = shown.check("group describe", program)
        assert report["members"]
        assert shown.check("broker status")[0]["workers"]
        (figures,) = shown.check("metrics", program, "--interval", "0.1")
        assert (figures["states"], figures["unanswered"]) == ({"RUNNING": 1}, [])
        (row,) = shown.check("query", program, "counts", "b")
        assert (row["key"], row["value"]) == ("b", 1)
        shown.check("state inspect", program)
        (healthy,) = shown.check("doctor", program)
        assert {each["verdict"] for each in healthy["findings"]} <= {"fine", "not looked at"}
    saved = str(tmp_path / "saved.json")
    (first,) = shown.check("plan", program, "--save", saved, "--bootstrap-servers", "embedded")
    assert (first["loses_state"], bool(first["internal_topics"])) == (None, True)
    (same,) = shown.check("plan", program, "--against", saved)
    assert (same["status"], same["changes"], same["may_run_side_by_side"]) == (0, [], True)
    Path(saved).write_text(Path(saved).read_text().replace('"counts"', '"sums"'))
    (other,) = shown.check("plan", program, "--against", saved, expected_status=1)
    assert (other["status"], other["loses_state"]) == (1, True)
    assert "lost" in {each["outcome"] for each in other["changes"]}
    shown.check("topics list")
    assert len(shown.check("topics describe", "shown-in")) == 5
    assert shown.check("topics tail", "shown-in")[-1]["headers"] == [["h", "1"]]
    shown.check("consume", "shown-out", "--until-end", "--value-serde", "int64")
    shown.check("group list")
    plan = ("--members", "2", "--partitions", "shown-in=3", "--assignor", "range")
    (preview,) = shown.check("group preview", *plan)
    assert [each["then"] for each in preview["members"]] == [
        {"shown-in": [0, 1]},
        {"shown-in": [2]},
    ]
    shown.check("state inspect", program)
    shown.check("state dump", program, "counts")
    assert "start_ms" in shown.check("state dump", program, "by-minute")[0]
    shown.check("changelog dump", program, "counts")
    assert "start_ms" in shown.check("changelog dump", program, "by-minute")[0]
    shown.check("txn list", "--all")
    open_transaction(servers)
    shown.check("txn list", "--topic", "shown-out")
    shown.check("txn abort", "shown-open", "--yes")
    shown.check("group reset", program, "--dry-run")
    shown.check("group configure", "shown", "consumer.session.timeout.ms=46000")
    (deleted,) = shown.check("group delete", "shown", "--yes")
    assert deleted["visible_offsets"] > 0
    shown.check("group restore-offsets", program, "--dry-run")
    shown.check("broker stop")
    (tmp_path / "worker.log").write_text("2026-11-29 03:00:00,000 ERROR no space left on device\n")
    shown.check("logs analyze", str(tmp_path / "worker.log"))
    # That of the reconciliation needs Spark: tests/spark/test_reconcile_command.py.
    # That of import-offsets needs an application of Kafka Streams: tests/porting/takeover.
    assert shown.checked | {"reconcile", "import-offsets"} == OUTPUTS.keys()


def open_transaction(servers: str) -> None:
    """Leave a transaction open that has written to the output."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "shown-open"})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce("shown-out", b"open", b"a")
    producer.flush(HANG_LIMIT_S)


def test_each_command_with_json_has_a_schema() -> None:
    found = set()
    for name in COMMANDS:
        command = load_command(name)
        for subname, each in getattr(command, "commands", {"": command}).items():
            takes_json = any("--json" in parameter.opts for parameter in each.params)
            if takes_json and not each.hidden:
                found.add(f"{name} {subname}".strip())
    assert found == OUTPUTS.keys()


def test_the_command_prints_the_schema_and_refuses_what_has_none() -> None:
    listed = CliRunner().invoke(cli, ["schema"]).stdout.splitlines()
    assert listed == list(OUTPUTS)
    printed = json.loads(CliRunner().invoke(cli, ["schema", "topics", "list"]).stdout)
    Draft202012Validator.check_schema(printed)
    assert printed["title"] == "each line that `millrace topics list --json` prints"
    refused = CliRunner().invoke(cli, ["schema", "run"])
    assert (refused.exit_code, "no command with --json" in refused.stderr) == (2, True)
