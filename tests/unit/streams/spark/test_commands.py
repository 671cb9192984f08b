"""Test the commands that need Spark on a machine without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.commands.root import cli
from streams.spark import environment


def test_without_the_extra_a_command_says_in_one_line_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", missing)
    done = CliRunner().invoke(cli, ["export", "--verify", str(tmp_path), "--no-topics"])
    assert done.exit_code == 2
    assert (
        done.stderr == "millrace: pyspark is not installed: pip install 'millrace-streams[spark]'\n"
    )


def test_the_command_line_starts_without_importing_spark() -> None:
    code = (
        "import sys; from streams.commands.root import COMMANDS, load_command; "
        "[load_command(each) for each in COMMANDS]; "
        "print([m for m in ('pyspark', 'pyarrow') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
