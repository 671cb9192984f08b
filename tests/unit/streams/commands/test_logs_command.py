"""Test what `millrace logs analyze` prints."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from typer.testing import CliRunner, Result

from streams.commands.root import cli
from tests.json_outputs import check_json_output
from tests.logs.recorded_text import RECORDED, read_recording

FENCED = str(RECORDED / "ours-fenced.log.gz")
BROKER = str(RECORDED / "kafka-stopped.log.gz")


def analyze(*arguments: str, standard_input: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["logs", "analyze", *arguments], input=standard_input)


def test_it_names_incident_cause_lines_and_page() -> None:
    result = analyze(FENCED, BROKER)
    assert result.exit_code == 0
    assert "counting: 2 fencing, 2 rebalances" in result.stdout
    assert "(millrace explain-error MR-010)" in result.stdout
    assert "fenced by a newer instance (_FENCED)" in result.stdout
    assert "2 incidents in 2 logs" in result.stdout
    assert "2026-11-29 04:00" in result.stdout


def test_as_json_it_has_the_form_of_its_schema() -> None:
    result = analyze(FENCED, BROKER, "--json")
    printed = json.loads(result.stdout)
    check_json_output("logs analyze", printed)
    assert [each["cause"] for each in printed["incidents"]] == ["MR-010", "MR-012"]


def test_a_log_without_faults_says_so() -> None:
    result = analyze(str(RECORDED / "kafka-fenced.log.gz"))
    assert result.stdout.startswith("no incident in 0.1 MB; ")


def test_it_reads_standard_input() -> None:
    text = "\n".join(read_recording("ours-disk-full")).encode()
    assert "A disk is full." in analyze("-", standard_input=text).stdout


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = analyze("none.log")
    assert result.exit_code == 2
    assert result.stderr == "millrace: log 'none.log' can't be read: No such file or directory\n"
    assert analyze(FENCED, BROKER, "--follow").stderr == (
        "millrace: --follow takes one log, and 2 are given\n"
    )


def test_a_pipe_that_stays_open_is_followed_to_its_end() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-m", "streams", "logs", "analyze", "--follow", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(read_recording("ours-fenced")) + "\n")
        process.stdin.flush()
        assert "fencing: " in process.stdout.readline()  # while the pipe is open
        process.stdin.close()
        assert "1 incident in 1 log," in process.stdout.read()


def test_a_log_that_grows_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    lines = read_recording("ours-fenced")
    log.write_text(lines[0] + "\n")
    command = [sys.executable, "-m", "streams", "logs", "analyze", "--follow", str(log)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # What a shell starts in the background ignores SIGINT, and so do these tests there.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        output = io.TextIOWrapper(process.stdout)
        with log.open("a") as file:
            file.write("\n".join(lines[1:]) + "\n")
        shown = output.readline()
        assert "fencing: " in shown
        assert shown.endswith("(millrace explain-error MR-010)\n")
        process.send_signal(signal.SIGINT)
        assert "1 incident in 1 log," in output.read()
