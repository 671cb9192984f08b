"""Test the tutorial: run the commands of docs/tutorial.md in order, in one shell.

A Python block that begins with `# NAME.py` is written as that file. If a block of text follows a
block of commands, these are repeated until their output has each line of the text, since results
come with the next commit. The virtual environment that the page makes gets this checkout instead of
a clone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import pytest

from tests.brokers import IN_CI
from tests.processes import HANG_LIMIT_S

pytestmark = IN_CI

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")
INSTALL = "pip install ../millrace pytest\n"
LINK_CHECKOUT = """
python - <<'END'
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
packages.joinpath("checkout.pth").write_text("import site; site.addsitedir({packages!r})\\n")
for name, module in (("millrace", "streams"), ("pytest", "pytest")):
    command = Path(sysconfig.get_path("scripts"), name)
    command.write_text('#!/bin/sh\\nexec python -m ' + module + ' "$@"\\n')
    command.chmod(0o755)
END
"""
REPEAT = """
repeat_until() {{
    for attempt in $(seq 1 {attempts}); do
        output=$("$1" 2>&1) || true
        missing=$(printf '%s' "$2" | while read -r line; do
            printf '%s\\n' "$output" | grep -qF -- "$line" || echo "$line"
        done)
        [ -z "$missing" ] && return 0
        sleep 0.2
    done
    printf 'the output lacks:\\n%s\\nit is:\\n%s\\n' "$missing" "$output"
    return 1
}}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """Represents a block of the page: a file to write, or commands with the output they show."""

    commands: str = ""
    shown: str = ""
    file: str = ""
    content: str = ""


def read_steps(page: str) -> list[Step]:
    """Return the steps of a page in order. Raises AssertionError for a block of another kind."""
    steps: list[Step] = []
    for found in BLOCK.finditer(page):
        text = found["text"]
        match found["language"]:
            case "sh":
                steps.append(Step(commands=text))
            case "python":
                name = FILE.match(text)
                assert name is not None, f"a file begins with its name: {text[:60]!r}"
                steps.append(Step(file=name[1], content=text))
            case "text":
                assert steps[-1].commands, f"no commands show {text!r}"
                steps[-1] = Step(commands=steps[-1].commands, shown=text)
            case language:
                raise AssertionError(f"the page has a block of {language}")
    return steps


def write_script(steps: Sequence[Step], packages: str) -> str:
    """Return a script for bash that takes the steps one after the other and stops at a failure."""
    lines = ["set -eo pipefail", REPEAT.format(attempts=HANG_LIMIT_S)]
    for number, step in enumerate(steps):
        lines.append(f"echo '== step {number}'")
        if step.file:
            lines.append(f"cat > {step.file} <<'END OF FILE'\n{step.content}END OF FILE")
        elif step.shown:
            lines.append(f"commands_{number}() {{\n{step.commands}}}")
            lines.append(f"repeat_until commands_{number} {quote(step.shown)}")
        else:
            link = LINK_CHECKOUT.format(packages=packages)
            lines.append(step.commands.replace(INSTALL, link))
    return "\n".join(lines) + "\n"


STEPS = read_steps(PAGE.read_text())


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> Iterator[Path]:
    """Provide a directory whose embedded broker is ended with the test."""
    yield tmp_path
    known = tmp_path / "shop" / "state" / "broker" / "process"
    if known.exists():
        os.kill(int(known.read_text().split()[1]), signal.SIGKILL)


def run_script(script: str, directory: Path) -> tuple[int, str]:
    """Run a script, end all that it leaves behind, and return its status and its output."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MILLRACE_")
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    log = directory / "log"
    with log.open("w") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=directory,
            env={**environment, "PATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = shell.wait(timeout=2 * HANG_LIMIT_S)
        except subprocess.TimeoutExpired:
            status = -1
        finally:
            with suppress(ProcessLookupError):  # all of it has ended
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    return status, log.read_text()


def test_the_commands_of_the_tutorial_do_what_it_says(directory: Path) -> None:
    script = write_script(STEPS, sysconfig.get_path("purelib"))
    status, output = run_script(script, directory)
    assert status == 0, output[-4000:]
    assert f"== step {len(STEPS) - 1}" in output
    assert not (directory / "shop" / "state").exists()


def test_the_tutorial_shows_what_it_promises() -> None:
    commands = "".join(step.commands for step in STEPS)
    for command in (
        INSTALL,
        "millrace create-topics ",
        "millrace run ",
        "millrace group describe ",
        "kill -9 ",
        "millrace plan ",
        "pytest ",
    ):
        assert command in commands, command
    assert sum(bool(step.shown) for step in STEPS) >= 6


def test_a_command_that_fails_is_found(directory: Path) -> None:
    steps = [Step(commands="true\n"), Step(commands="false\n"), Step(commands="true\n")]
    status, output = run_script(write_script(steps, ""), directory)
    assert status != 0
    assert "== step 2" not in output


def test_an_output_that_lacks_a_line_is_found(directory: Path) -> None:
    step = Step(commands="echo 'Faro 1'\n", shown="Faro 1\nPorto 1\n")
    script = write_script([step], "").replace(f"seq 1 {HANG_LIMIT_S}", "seq 1 2")
    status, output = run_script(script, directory)
    assert status != 0
    assert "lacks:\nPorto 1\n" in output
