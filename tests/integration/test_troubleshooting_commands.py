"""Test that the commands of the troubleshooting pages run as they stand there, on both brokers.

Only the words in capitals are replaced, by what an application has that runs here.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.commands.root import cli
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.integration.test_doctor import Patient
from tests.processes import wait_until
from tests.unit.docs.page_examples import find_blocks

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

PAGES = sorted((Path(__file__).parents[2] / "docs" / "troubleshooting").glob("*.md"))
NOT_RUN = {
    "txn abort": "it ends a transaction that hangs, which tests/integration/test_doctor.py does",
    "reconcile": "it needs Spark, and tests/spark runs it",
    "--watch": "it goes on until Ctrl-C",
    "broker status": "it is of an embedded broker in that directory, which this one may not be",
}
STATUSES = {"doctor": {0, 1, 2}, "group restore-offsets": {0, 1}}
"""The exit statuses of commands that may find something; others end with 0."""
WITHOUT_WORKERS = "group restore-offsets"


def list_commands() -> list[str]:
    """Return the command lines of the pages' blocks for a shell, each once."""
    lines = (
        line.removeprefix("millrace ")
        for page in PAGES
        for block in find_blocks(page.read_text(), "sh")
        for line in block.splitlines()
        if line.startswith("millrace ")
    )
    return sorted(set(lines))


def is_run(line: str) -> bool:
    return not any(each in line for each in NOT_RUN)


@pytest.fixture
def patient(topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Patient(topics, tmp_path)


def fill_in(line: str, patient: Patient, address: str) -> list[str]:
    """Return the words of a command line for the application of a test."""
    app = f"{patient.name.replace('-', '_')}:app"
    words = {
        "SERVERS": patient.topics.servers,
        "ADDRESS": address,
        "DIRECTORY": str(patient.state),
        "APP-STORE": f"{patient.name}-counts",
        "TOPIC": patient.topics.source,
        "INPUT": patient.topics.source,
        "MODULE:APP": app,
        "APP": app,
        "FILE": "connection.json",
    }
    expression = "|".join(map(re.escape, words))
    return [
        re.sub(rf"(?<![\w:])({expression})(?![\w:])", lambda found: words[found[1]], word)
        for word in shlex.split(line)
    ]


def run_line(line: str, patient: Patient, address: str) -> str | None:
    """Run a command line of a page; return what it printed if it ended otherwise than it may."""
    words = fill_in(line, patient, address)
    if "--bootstrap-servers" not in words and words[0] in ("doctor", "plan", "acls"):
        words += ["--bootstrap-servers", patient.topics.servers]
    done = CliRunner().invoke(cli, words)
    allowed = next((s for name, s in STATUSES.items() if line.startswith(name)), {0})
    if done.exit_code in allowed and done.stdout and "No such option" not in done.output:
        return None
    return f"{words}: status {done.exit_code}: {done.output} {done.exception!r}"


def test_the_commands_of_the_pages_run_as_they_stand_there(patient: Patient) -> None:
    lines = [each for each in list_commands() if is_run(each)]
    patient.topics.load(400)
    patient.build()
    for name in ("worker", "worker-1", "worker-2", "broker"):
        Path(f"{name}.log").write_text("2026-11-29 09:00:00,000 7 INFO streams.x: nothing\n")
    Path("connection.json").write_text(json.dumps({}))
    app = fill_in("APP", patient, "")[0]
    saved = CliRunner().invoke(cli, ["plan", app, "--save", "saved.json"])
    assert saved.exit_code == 0, saved.output
    with patient.runs() as running:
        wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
        address = f"127.0.0.1:{running.ports['health_port']}"
        wrong = [run_line(each, patient, address) for each in lines if WITHOUT_WORKERS not in each]
    wrong += [run_line(each, patient, address) for each in lines if WITHOUT_WORKERS in each]
    assert [each for each in wrong if each] == []
    assert len(lines) > 25


def test_what_is_not_run_is_on_a_page() -> None:
    assert [part for part in NOT_RUN if not any(part in each for each in list_commands())] == []


def test_a_command_that_fails_is_found(patient: Patient) -> None:
    patient.build()
    found = run_line("consume TOPIC --form beginning", patient, "")
    assert found is not None
    assert "status 2" in found
