"""Build programs in other languages once a session, start them, listen to them and end them.

A program prints a line when something has happened (`committed`), so that a test can kill the
broker at that moment and not after some time. A tool that this machine lacks skips the test, but in
CI it fails it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.brokers import in_ci
from tests.kafka.server import class_path
from tests.processes import HANG_LIMIT_S, ServerProcess, wait_until

HERE = Path(__file__).parent
# Short lives: one compiler and one collector thread.
JVM_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


def need(tool: str) -> None:
    """Skip the test if the tool is not there; in CI, fail it."""
    if shutil.which(tool) is None:
        reason = f"there is no `{tool}` on the PATH"
        if in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)


def run(command: Sequence[str], *, directory: Path | None = None, input_: str = "") -> str:
    """Run the command to its end and return its stdout; a failure carries its stderr."""
    done = subprocess.run(
        list(command),
        cwd=directory,
        input=input_,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_java(into: Path) -> list[str]:
    """Compile the Java programs and return the command that takes a class's name and arguments."""
    need("javac")
    sources = sorted(map(str, (HERE / "java").glob("*.java")))
    run(["javac", "-Xlint:all", "-Werror", "-cp", class_path(), "-d", str(into), *sources])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{class_path()}"]


def build_go(into: Path, package: str) -> list[str]:
    """Build one of the packages below `go/` and return its command."""
    need("go")
    run(["go", "build", "-o", str(into / "program"), package], directory=HERE / "go")
    return [str(into / "program")]


def build_javascript(into: Path) -> list[str]:
    need("npm")
    for each in (HERE / "javascript").glob("*.js*"):
        shutil.copy(each, into)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory=into)
    return ["node", str(into / "copy.js")]


class Program(ServerProcess):
    """Represents a running program; what it prints on stdout and stderr is its log."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        super().__init__(name)
        self.spawn(command)

    def times(self, line: str) -> int:
        """Return how often the program has printed this line."""
        return len(re.findall(rf"^{re.escape(line)}$", self.log_since(0), re.MULTILINE))

    def wait_for(self, line: str, times: int = 1) -> None:
        """Wait until the program has printed the line so often.

        Raises AssertionError where it has ended before, TimeoutError where that takes too long.
        """
        self.wait_until(
            lambda: self.times(line) >= times,
            what=lambda: f"{self.name} has not said {line!r} {times} times",
        )

    def wait_until(self, condition: Callable[[], bool], *, what: Callable[[], str]) -> None:
        """Wait for the condition while the program runs.

        Raises AssertionError where the program ends before, TimeoutError where it takes too long.
        """

        def holds() -> bool:
            if condition():
                return True
            assert self.ended is None, f"{self.name} ended: {self.ended}\n{self.log_tail()}"
            return False

        wait_until(holds, what=lambda: f"{what()}\n{self.log_tail()}")
