"""Test which options the commands have, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from streams.commands.root import cli
from streams.processes.embedded import refuse_embedded_directory


def list_commands_with(option: str) -> set[str]:
    """Return the names of the commands that have an option."""
    commands = dict(typer.main.get_group(cli).commands)
    for group in list(commands.values()):
        commands |= {
            f"{group.name} {name}": each for name, each in getattr(group, "commands", {}).items()
        }
    return {
        name
        for name, command in commands.items()
        if any(option in parameter.opts for parameter in command.params)
    }


def test_each_command_that_reaches_a_broker_takes_its_connection_from_a_file() -> None:
    # `acls` asks no broker: the address is for the commands that it prints.
    reaching = list_commands_with("--bootstrap-servers") - {"acls"}
    assert reaching == {
        *("run", "doctor", "plan", "create-topics", "export", "reconcile", "produce"),
        *("consume", "import-offsets", "query"),
        *(f"topics {name}" for name in ("list", "describe", "create", "delete", "tail")),
        *(f"group {name}" for name in ("list", "describe", "preview", "reset", "restore-offsets")),
        *("group configure", "group delete"),
        *("changelog dump", "txn list", "txn abort"),
    }
    assert list_commands_with("--connection") == reaching


def test_a_group_is_not_looked_for_on_an_embedded_broker_that_does_not_run(tmp_path: Path) -> None:
    state = tmp_path / "state"
    result = CliRunner().invoke(cli, ["group", "describe", "words", "--state-dir", str(state)])
    assert result.exit_code == 2
    assert f"no embedded broker runs in '{state}'" in result.stderr
    assert not state.exists(), "nothing was started to look at it"


@pytest.mark.parametrize("given", ["state", "state/broker"])
def test_a_broker_is_not_started_in_the_directory_of_an_embedded_one(
    given: str, tmp_path: Path
) -> None:
    topics = tmp_path / "state" / "broker" / "data"
    topics.mkdir(parents=True)
    (topics.parent / "process").write_text("127.0.0.1:7\n1\n")
    result = CliRunner().invoke(cli, ["broker", "--data", str(tmp_path / given)])
    assert result.exit_code == 2
    assert f"--data '{tmp_path / given}' belongs to an application" in result.stderr
    assert f"millrace broker --data {topics}`" in result.stderr


def test_a_directory_of_its_own_is_for_a_broker(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    refuse_embedded_directory(tmp_path)
    refuse_embedded_directory(tmp_path / "not there yet")
