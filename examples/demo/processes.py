"""Start the demo's worker and broker processes, kill them with `kill -9`, and restart them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SESSION_TIMEOUT_MS = 20_000
COMMIT_INTERVAL_MS = 500
_SETTINGS = (
    f"session_timeout_ms={SESSION_TIMEOUT_MS}",
    "heartbeat_interval_ms=500",
    f"commit_interval_ms={COMMIT_INTERVAL_MS}",
    # Reconciliation names records of the repartition topic too, so processed ones must stay there.
    "repartition_purge_interval_ms=86400000",
)
_START_S = 30.0
_RECONCILE_S = 600.0
_UNCHECKED = 3
"""The status of a reconciliation that finds nothing off and has not checked all."""


class DemoFailed(Exception):
    """Signals that a part of the demo could not run, with a message that says why."""


class Process:
    """Runs a child process from its creation on; it can be killed and started again."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self._command = command
        self._log = log
        self._environment = {**os.environ, **environment}
        self.kills = 0
        self.start()

    def start(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # nosec B603 # a command of our own
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def kill(self) -> None:
        """Kill the process with `kill -9` and wait until it has ended."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def stop(self, timeout_s: float = 30) -> int:
        """Stop the process with SIGTERM, or kill it after the time-out; return its exit status."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._process.returncode

    def poll_exit_status(self) -> int | None:
        """Return the exit status of a process that ended by itself, or None while it runs."""
        return self._process.poll()

    def read_log_tail(self) -> str:
        """Return the last lines of the process's log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-5:])

    def wait_for_first_line(self) -> str:
        """Wait for the first line that the process prints, and return it.

        Raises DemoFailed if that takes too long or it ends.
        """
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], _START_S)
        line = output.readline().decode().strip() if ready else ""
        if not line:
            raise DemoFailed(f"{self._command} did not start: {self.read_log_tail()}")
        return line


class Broker(Process):
    """Runs the embedded broker as a process that has the same port after each start."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "coordinator", "--data", str(directory / "broker")]
        super().__init__([*command, "--port", "0"], directory / "broker.log", {})
        self.address = self.wait_for_first_line().removeprefix("listening on ")
        self._command = [*command, "--port", self.address.rpartition(":")[2]]

    def restart(self) -> float:
        """Kill the broker and start it again; return the seconds that it did not listen."""
        began = time.monotonic()
        self.kill()
        self.start()
        self.wait_for_first_line()
        return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Target:
    """Says where the demo runs: the broker's address, and the file with its connection, if any."""

    address: str
    connection: Path | None = None

    @property
    def options(self) -> list[str]:
        """Return the options by which `millrace` reaches the broker."""
        connection = [] if self.connection is None else ["--connection", str(self.connection)]
        return ["--bootstrap-servers", self.address, *connection]


def start_worker(
    number: int, target: Target, guarantee: str, suffix: str, directory: Path
) -> Process:
    """Start a worker's process: `millrace run examples.word_count:app`."""
    command = [sys.executable, "-m", "streams", "run", "examples.word_count:app", "--verbose"]
    command += [*target.options, "--processing-guarantee", guarantee]
    command += ["--state-dir", str(directory / "state")]
    for setting in _SETTINGS:
        command += ["--set", setting]
    log = directory / f"worker-{number}.log"
    return Process(command, log, {"WORD_COUNT_SUFFIX": suffix})


def run_reconcile(target: Target, suffix: str) -> bool:
    """Run `millrace reconcile examples.word_count:app`, and return whether the counts are right.

    The command prints its report. Raises DemoFailed if it could not tell, or not of all stores and
    topics.
    """
    command = [sys.executable, "-m", "streams", "reconcile", "examples.word_count:app"]
    command += target.options
    environment = {**os.environ, "WORD_COUNT_SUFFIX": suffix}
    try:
        ended = subprocess.run(  # nosec B603 # a command of our own
            command, env=environment, stdin=subprocess.DEVNULL, timeout=_RECONCILE_S
        )
    except subprocess.TimeoutExpired:
        raise DemoFailed(f"{command} is not done after {_RECONCILE_S:g} s") from None
    if ended.returncode not in (0, 1):
        why = ": not all of it was checked" if ended.returncode == _UNCHECKED else ""
        raise DemoFailed(f"{command} ended with status {ended.returncode}{why}")
    return ended.returncode == 0
