"""Test that each command line in a message names where the program that said it was at work."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import typer

import streams
from streams import App
from streams.command_lines import (
    OFFERED_COMMANDS,
    Invocation,
    current_invocation,
    format_broker_command,
    format_command,
    format_kafka_command,
    hold_invocation,
    note_invocation,
)
from streams.commands.root import COMMANDS, cli
from streams.common.host import SystemHost
from streams.errors import AuthorizationError
from streams.processes.invocation import hold_application_invocation, locate_application
from tests.processes import HANG_LIMIT_S

SOURCES = Path(streams.__file__).parent
BUILDERS = {"command_lines.py"}
"""The modules that build command lines; all other text with one is of a docstring."""
found_app = App("found")


def split(command: str) -> list[str]:
    """Return the words of a command line in backticks, as a shell splits them."""
    assert command.startswith("`")
    assert command.endswith("`")
    return shlex.split(command.strip("`"))


@pytest.fixture
def known() -> dict[str, Any]:
    return {
        "application": "jobs.counts:app",
        "application_id": "counts",
        "bootstrap_servers": "one:9092,two:9092",
        "state_dir": Path("/var/lib/it's state"),
        "config_file": Path("/etc/millrace.toml"),
        "connection_file": Path("/etc/connection file"),
    }


CLUSTER = ["--bootstrap-servers", "one:9092,two:9092"]
STATE = ["--state-dir", "/var/lib/it's state"]
FILES = ["--config", "/etc/millrace.toml", "--connection", "/etc/connection file"]


def test_a_command_names_the_app_the_brokers_the_state_directory_and_the_files(
    known: dict[str, Any],
) -> None:
    with hold_invocation(**known):
        reset = split(format_command("group reset"))
        create = split(format_command("create-topics", "lines", "two words"))
    assert reset == ["millrace", "group", "reset", "jobs.counts:app", *CLUSTER, *STATE, *FILES]
    assert create == ["millrace", "create-topics", "lines", "two words", *CLUSTER, *FILES]
    assert split(format_command("group reset")) == ["millrace", "group", "reset", "MODULE:APP"]


def test_the_embedded_broker_is_named_by_its_state_directory(known: dict[str, Any]) -> None:
    with hold_invocation(**{**known, "bootstrap_servers": "embedded", "config_file": None}):
        create = split(format_command("create-topics", "lines"))
    assert create[3:7] == ["--bootstrap-servers", "embedded", *STATE]


def test_a_relative_state_directory_is_named_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with hold_invocation(bootstrap_servers="embedded", state_dir=Path("state")):
        assert split(format_command("group list"))[-1] == str(tmp_path / "state")


def test_without_the_apps_place_a_reset_names_its_id_and_other_commands_a_stand_in() -> None:
    with hold_invocation(application_id="counts"):
        assert split(format_command("group reset"))[3] == "counts"
        assert split(format_command("group restore-offsets", "--accept"))[3:] == [
            "MODULE:APP",
            "--accept",
        ]


def test_a_connection_in_the_code_is_a_file_for_commands_that_import_no_app() -> None:
    with hold_invocation(application="app:app", has_connection_in_code=True):
        assert split(format_command("group reset"))[3:] == ["app:app"]
        assert split(format_command("group list"))[3:] == ["--connection", "FILE"]


def test_kafkas_own_tools_get_the_brokers_address() -> None:
    with hold_invocation(bootstrap_servers="embedded", servers="127.0.0.1:4711"):
        words = split(format_kafka_command("kafka-configs.sh", "--alter"))
    assert words == ["kafka-configs.sh", "--alter", "--bootstrap-server", "127.0.0.1:4711"]


def test_a_broker_is_offered_at_the_port_that_was_asked() -> None:
    words = split(format_broker_command("localhost:9192"))
    assert words == ["millrace", "broker", "--data", "broker-data", "--port", "9192"]
    with hold_invocation(broker_data=Path("/state/broker/data")):
        words = split(format_broker_command("localhost:9192"))
    assert words == ["millrace", "broker", "--data", "/state/broker/data", "--port", "9192"]


def test_what_is_known_goes_to_threads_that_are_started_and_ends_with_the_block() -> None:
    found: list[Invocation] = []
    done = Event()

    def look() -> None:
        found.append(current_invocation())
        done.set()

    with hold_invocation(application="first:app"):
        note_invocation(servers="one:9092")
        SystemHost().spawn_thread("look", look)
        assert done.wait(HANG_LIMIT_S)
    assert found == [Invocation(application="first:app", servers="one:9092")]
    note_invocation(servers="two:9092")  # nobody holds it
    assert current_invocation() == Invocation()


def test_an_app_is_found_by_the_variable_of_a_module() -> None:
    assert locate_application(found_app) == (f"{__name__}:found_app", None)
    assert locate_application(App("local")) == ("", None)
    with hold_application_invocation(found_app, "found", found_app.config, {}):
        assert split(format_command("group reset"))[3] == f"{__name__}:found_app"


SCRIPT = """
from streams import App, serdes
from streams.command_lines import format_command
from streams.processes.invocation import hold_application_invocation

app = App("mine", bootstrap_servers="one:9092")
app.stream("in", key=serdes.string, value=serdes.string).to("out")

if __name__ == "__main__":
    with hold_application_invocation(app, "mine", app.config, {}):
        print(format_command("acls").strip("`"))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("how", "at", "expected"),
    [
        (["app.py"], ".", "acls app:app "),
        (["-m", "app"], ".", "acls app:app "),
        (["inner/job.py"], ".", "acls inner.job:app "),
        (["my-script.py"], ".", "acls my-script:app "),
        (["../app.py"], "inner", "acls app:app "),
        (["v1.2/job.py"], ".", "acls job:app "),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_the_app_of_a_script_is_named_so_that_the_pasted_command_imports_it(
    how: list[str], at: str, expected: str, tmp_path: Path
) -> None:
    for name in ("app.py", "inner/job.py", "my-script.py", "v1.2/job.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SCRIPT)
    here = tmp_path / at

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_LIMIT_S,
        )

    offered = run([sys.executable, *how]).stdout.strip()
    assert expected in offered
    pasted = run(["sh", "-c", offered])
    assert pasted.returncode == 0, pasted.stderr
    assert "mine" in pasted.stdout


def test_a_missing_right_is_told_from_the_message_of_a_process_with_other_settings(
    known: dict[str, Any],
) -> None:
    with hold_invocation(**known):
        message = str(AuthorizationError("Read", "topic", "lines"))
    assert "jobs.counts:app --bootstrap-servers one:9092" in message
    assert AuthorizationError.from_message(message).name == "lines"


@pytest.mark.parametrize("command", OFFERED_COMMANDS)
def test_a_command_that_is_offered_has_the_options_that_it_is_given(command: str) -> None:
    found: Any = typer.main.get_command(cli)
    with ExitStack() as exits:
        for word in command.split():
            context = exits.enter_context(typer.Context(found))
            found = found.get_command(context, word)
            assert found is not None, command
        options = {name for each in found.params for name in each.opts}
    assert {*OFFERED_COMMANDS[command]} <= options
    if command != "export":  # which is offered with an option that asks no broker
        of_cluster = {"--bootstrap-servers", "--state-dir", "--config", "--connection"} & options
        assert of_cluster == {*OFFERED_COMMANDS[command]}


def list_texts(path: Path) -> list[str]:
    """Return the texts of a module that are no docstrings, and stand for no whole statement."""
    tree = ast.parse(path.read_text())
    documents = {
        id(each.value)
        for each in ast.walk(tree)
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }
    return [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and id(each) not in documents
    ]


def test_no_other_module_writes_a_command_line_of_its_own() -> None:
    commands = [f"`millrace {name}" for name in COMMANDS]
    written = [
        (str(path.relative_to(SOURCES)), text)
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name not in BUILDERS
        for text in list_texts(path)
        if any(command in text for command in commands)
    ]
    assert written == [], "take it from streams.command_lines.format_command"
