"""Test what `millrace run` logs, and what only with `-v`; and which options commands have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from streams.commands.cli import _configure_logging, cli
from streams.runtime.clients.errors import librdkafka_log

REFUSED = "127.0.0.1:9092/1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"
TIMED_OUT = "kafka-1:9092/1: Connection setup timed out in state CONNECT"
DENIED = "kafka-1:9092/1: SASL authentication error: Authentication failed"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Yield the root logger, which a test may configure, and restore it afterwards."""
    root = logging.getLogger()
    level = root.level
    yield root
    root.setLevel(level)
    librdkafka_log.setLevel(logging.NOTSET)
    librdkafka_log.filters.clear()


@pytest.mark.parametrize(
    ("verbose", "told"),
    [
        (False, ["skipped", "out of range", DENIED]),
        (True, ["running", "skipped", "out of range", REFUSED, TIMED_OUT, "slow", DENIED]),
    ],
)
def test_warnings_are_shown_and_attempts_to_connect_are_not(
    verbose: bool,
    told: list[str],
    root: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(root, "handlers", [])  # as it is when a process begins
    _configure_logging(verbose=verbose)
    logging.getLogger("streams.processes.running").info("running")
    logging.getLogger("streams.runtime.failures").warning("skipped")
    logging.getLogger("streams.runtime.clients").warning("out of range")
    librdkafka_log.error("%s", REFUSED)
    librdkafka_log.error("%s", TIMED_OUT)
    librdkafka_log.warning("%s", "slow")
    librdkafka_log.error("%s", DENIED)
    assert [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()] == told


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
    assert reaching == {"run", "plan", "create-topics", "export", "reconcile", "group describe"}
    assert list_commands_with("--connection") == reaching


def test_a_group_is_not_looked_for_on_an_embedded_broker_that_does_not_run(tmp_path: Path) -> None:
    state = tmp_path / "state"
    result = CliRunner().invoke(cli, ["group", "describe", "words", "--state-dir", str(state)])
    assert result.exit_code == 2
    assert f"no embedded broker runs in '{state}'" in result.stderr
    assert not state.exists(), "nothing was started to look at it"
