"""Start, stop and kill the workers of one application, with Millrace or with Kafka Streams."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.compiled import compile_peers
from tests.clients.programs import JVM_FLAGS

_STOP_S = 90.0
SYSTEMS = ("millrace", "kafka-streams")
MILLRACE = (sys.executable, "-m", "benchmarks.rebalance_worker")


class FleetSettings(NamedTuple):
    """Holds what all workers of an application are told."""

    servers: str
    application: str
    value_bytes: int
    standbys: int
    probing_ms: int
    session_ms: int
    heartbeat_ms: int
    acceptable_lag: int
    """The lag in records up to which a worker's state may take a task over (KIP-441)."""
    protocol: str = "classic"
    """The group protocol; with `streams` the group has some of these settings on the broker."""


class Fleet:
    """Runs workers of one application as processes, each with a state directory of its own.

    `program` is the command that runs a worker of Millrace, if not the benchmark's own.
    """

    def __init__(
        self,
        system: str,
        settings: FleetSettings,
        directory: Path,
        program: Sequence[str] = MILLRACE,
    ) -> None:
        self.system = system
        self._settings = settings
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._program = self._compile_java() if system == "kafka-streams" else program

    def start_worker(self, name: str) -> None:
        """Start a worker by its name, which is that of its state directory too."""
        state = self.state_of(name)
        state.mkdir(parents=True, exist_ok=True)
        each = self._settings
        times = (each.probing_ms, each.session_ms, each.heartbeat_ms)
        numbers = (each.value_bytes, each.standbys, *times, each.acceptable_lag)
        arguments = [each.servers, each.application, str(state), name, *map(str, numbers)]
        arguments.append(each.protocol)
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*self._program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop_worker(self, name: str) -> None:
        """Stop a worker with SIGTERM. Raises RuntimeError if it does not end in time."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{name} did not end in {_STOP_S} s") from None

    def kill_worker(self, name: str) -> None:
        """Kill a worker with `kill -9`."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """Kill the workers that still run."""
        for name in list(self._processes):
            self.kill_worker(name)

    def check_running(self) -> None:
        """Raise RuntimeError, with the end of its log, if a worker has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = (self._directory / f"{name}.log").read_text(errors="replace")
                raise RuntimeError(f"{name} ended with {process.returncode}: {log[-2_000:]}")

    def is_running(self, name: str) -> bool:
        """Return whether a worker has ever said that it processes its tasks."""
        return b"RUNNING\n" in (self._directory / f"{name}.log").read_bytes()

    def state_of(self, name: str) -> Path:
        """Return the state directory of a worker."""
        return self._directory / name

    def _compile_java(self) -> tuple[str, ...]:
        """Compile the worker of Kafka Streams, and return the command that runs it."""
        path = compile_peers(self._directory / "classes")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        # A JVM of a worker in production compiles its hot code to the end.
        flags = [flag for flag in JVM_FLAGS if "Tiered" not in flag]
        return ("java", *flags, "-Xmx512m", quiet, "-cp", path, "Summing")
