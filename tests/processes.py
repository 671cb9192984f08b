"""Run a server as a process of its own: start it, wait, end it by its pid, read its log.

Both brokers of the tests are real processes, so that `kill -9` means the same to either. A wait has
a bound and a condition; when the bound is reached or the process ends early, the error carries the
end of its log.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
HANG_LIMIT_S = 300
_ABORT_S = 2.0
"""How long a test waits for what is to come. It only ends a wait that would never end, and is no
verdict: on a machine that is busy with other things everything takes many times as long."""
UNREACHED_MS = 2 * HANG_LIMIT_S * 1_000
"""A time-out that no test waits for: what comes at all has not come because of it."""
_PORT_MIN, _PORT_MAX = 10_000, 32_768
"""Servers of tests have ports in between. Linux gives those from the upper one on to clients, and
to who asks for any port."""
# ApiVersions v0: size, key, version, correlation id, no client id. Every broker answers it.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class StartFailed(RuntimeError):
    """Says that the server ended or did not answer in time; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago; taken together, so that they differ.

    The system gives them to nobody by itself: a server that is down for a while finds its port free
    again, and a client that tries to connect meanwhile doesn't get that port for its own end.
    """
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            sockets.append(socket.socket())
            try:
                sockets[-1].bind((HOST, _PORT_MIN + secrets.randbelow(_PORT_MAX - _PORT_MIN)))
            except OSError:
                sockets.pop().close()
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def answers(port: int, host: str = HOST) -> bool:
    """Tell whether a broker on this port answers ApiVersions."""
    try:
        with socket.create_connection((host, port), timeout=1.0) as connection:
            connection.sendall(_API_VERSIONS)
            return len(connection.recv(4)) > 0
    except OSError:
        return False


def read_waits_ns(pid: int) -> dict[str, int]:
    """Return how long each thread of a process has waited for a processor in all, by its id.

    Empty for a process that has ended, and where the kernel does not count it.
    """
    found = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError):  # the thread has ended
            found[path.parent.name] = int(path.read_text().split()[1])
    return found


def wait_until(
    condition: Callable[[], bool],
    *,
    what: Callable[[], str] | str,
    timeout_s: float = HANG_LIMIT_S,
    look_every_s: float = 0.01,
) -> None:
    """Look at the condition until it holds; after the bound, say what was waited for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s} s: {what if isinstance(what, str) else what()}")
        time.sleep(look_every_s)


@contextmanager
def ending(
    process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM
) -> Iterator[None]:
    """Send the signal to the process at the end of the block; one that goes on is killed."""
    try:
        yield
    finally:
        process.send_signal(number)
        try:
            process.wait(HANG_LIMIT_S)
        finally:
            process.kill()
            process.wait(HANG_LIMIT_S)


class ServerProcess:
    """Represents one server with a directory of its own, which `close` removes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix=f"millrace-{name}-"))
        self.log_path = self.directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Return the exit status of a process that has ended by itself; None while it runs."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.poll()

    def spawn(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Start the process and return where in the log this start begins."""
        begin = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONFAULTHANDLER": "1", **(environment or {})},
            )
        return begin

    def wait_until_ready(self, ready: Callable[[], bool]) -> None:
        """Wait for the condition, as long as the process lives. Raises StartFailed."""
        process = self._process
        assert process is not None
        try:
            wait_until(
                lambda: process.poll() is not None or ready(),
                what=f"{self.name} is not ready",
            )
        except TimeoutError as error:
            self.kill()
            raise StartFailed(f"{error}\n{self.log_tail()}") from None
        if process.returncode is not None:
            raise StartFailed(f"{self.name} ended: {process.returncode}\n{self.log_tail()}")

    def log_since(self, begin: int) -> str:
        with self.log_path.open("rb") as log:
            log.seek(begin)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of the log, for the report of a failure."""
        if not self.log_path.exists():
            return "(no log)"
        tail = self.log_path.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(tail)

    def end(self, number: signal.Signals) -> None:
        """Send the signal and wait; a process that ignores it is aborted, and killed.

        Python then writes the stacks of its threads to the log.
        """
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(HANG_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            time.sleep(_ABORT_S)
            process.kill()
            process.wait(HANG_LIMIT_S)

    def stop(self) -> None:
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process with SIGKILL: nothing is flushed, nobody is told."""
        self.end(signal.SIGKILL)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
