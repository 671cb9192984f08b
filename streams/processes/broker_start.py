"""Start the process of the embedded broker, so that a kill at any step leaves nothing half-started.

Only who has the lock `starting.lock` starts a broker. The broker inherits that lock, and gives it
up when it listens and has written its address. So whoever is killed, the next process that gets the
lock finds one of two: a broker that answers at the address in the file, or none.

    step       what is true                        a kill of the starter then leaves
    LOCKED     nobody else starts a broker         no broker: the lock ends with the process
    SPAWNED    the broker's process has begun,     the broker, which goes on; others wait for the
               and has the lock too                lock until it listens, or has ended
    OPENED     it has its data open                the same
    ANNOUNCED  it listens, its address is in the   a broker that answers
               file, and it has given up the lock
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from state.errors import DirectoryLocked
from state.locks import exclude_owner
from streams.errors import ConfigError

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 10.0
"""The seconds after which the log says that a broker is still waited for, and again after each."""
_LOOK_INTERVAL_S, _OPENING_INTERVAL_S = 0.1, 0.01
METRICS_PORT_FILE = "metrics-port"
"""The file, in the broker's directory, with the port at which it answers Prometheus."""
_ATTEMPTS_MAX = 5
"""How often a broker is started that a signal ends before it listens."""


class BrokerStartStep(Enum):
    """Names the points of a start, in their order, at which a test may end a process."""

    LOCKED = auto()
    SPAWNED = auto()
    OPENED = auto()
    ANNOUNCED = auto()


OnStartStep = Callable[[BrokerStartStep, int], None]
"""Is called at each step of a start, with the process id of the broker; 0 before there is one."""


def ignore_start_step(step: BrokerStartStep, broker_pid: int) -> None:
    """Do nothing at a step of a start."""


def build_broker_command(data_dir: Path, port: int, host: str, settings: list[str]) -> list[str]:
    """Return the command line that runs a broker process."""
    command = [sys.executable, "-m", "coordinator", "--data", str(data_dir)]
    command += ["--port", str(port), "--host", host]
    for setting in settings:
        command += ["--set", setting]
    return command


def is_broker_alive(directory: Path) -> bool:
    """Return whether a process holds the lock on the data of the broker in `directory`."""
    try:
        with exclude_owner(directory / "data" / ".lock"):
            return False
    except DirectoryLocked:
        return True


class WaitProgress:
    """Logs now and then that the broker in a directory is waited for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._began_s = self._logged_s = time.monotonic()

    def waited_s(self) -> float:
        """Return the seconds since the wait began."""
        return time.monotonic() - self._began_s

    def log_if_due(self) -> None:
        """Log the wait if ten seconds have passed since the last time."""
        now_s = time.monotonic()
        if now_s - self._logged_s < PROGRESS_INTERVAL_S:
            return
        self._logged_s = now_s
        log.warning(
            "the embedded broker with its data in %s is being started, or does not answer yet, for "
            "%.0f s: it is waited for as long as it lives; broker.log beside it says what it does",
            self._directory / "data",
            now_s - self._began_s,
        )


@contextmanager
def hold_start_lock(
    directory: Path, is_given_up: Callable[[], bool], *, must_exist: bool = False
) -> Iterator[int]:
    """Hold the lock on starts of the broker in `directory`, and yield its file descriptor.

    Waits for a process that starts the broker, and for a broker that is half-started by one that is
    gone; `is_given_up` ends the wait. Raises ConfigError if it does; OSError if the directory is
    gone and it `must_exist`.
    """
    progress = WaitProgress(directory)
    with open(directory / "starting.lock", "r+" if must_exist else "a+") as lock:
        while not _try_lock(lock.fileno()):
            if is_given_up():
                raise ConfigError(f"the embedded broker in {str(directory)!r} was not waited for")
            progress.log_if_due()
            time.sleep(_LOOK_INTERVAL_S)
        yield lock.fileno()


def _try_lock(file: int) -> bool:
    """Lock a file, and return whether nobody else has it locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class StartedBroker(NamedTuple):
    """Represents a broker that listens."""

    address: str
    process_id: int


def start_broker(
    directory: Path,
    ports: list[int],
    lock: int,
    is_given_up: Callable[[], bool],
    on_step: OnStartStep = ignore_start_step,
) -> StartedBroker:
    """Start a broker on the first free one of `ports`; return its address and process id.

    The broker writes both to the file `process`. `lock` is the lock that the caller holds. One that
    a signal ends is started again. Raises ConfigError.
    """
    on_step(BrokerStartStep.LOCKED, 0)
    for port in ports:
        for _ in range(_ATTEMPTS_MAX):
            process = _spawn_broker(directory, port, lock)
            on_step(BrokerStartStep.SPAWNED, process.pid)
            output = _read_first_line_or_kill_if_given_up(process, directory, is_given_up, on_step)
            if output.startswith("listening on "):
                on_step(BrokerStartStep.ANNOUNCED, process.pid)
                process.returncode = 0  # it outlives us, nobody waits for it: no warning of that
                return StartedBroker(output.removeprefix("listening on ").strip(), process.pid)
            if process.wait() >= 0 or is_given_up():
                break
            name = signal.Signals(-process.returncode).name
            log.warning("the embedded broker was ended by %s while it started", name)
    lines = (directory / "broker.log").read_text(errors="replace").strip().splitlines()
    why = lines[-1].removeprefix("millrace: ") if lines else "no output"
    raise ConfigError(f"the embedded broker did not start in {directory / 'data'}: {why}")


def _spawn_broker(directory: Path, port: int, lock: int) -> subprocess.Popen[bytes]:
    """Spawn a broker that inherits the lock, and writes its address once it listens."""
    settings = []
    with suppress(FileNotFoundError):
        settings = [f"metrics.port={(directory / METRICS_PORT_FILE).read_text().strip() or -1}"]
    command = build_broker_command(directory / "data", port, "127.0.0.1", settings)
    command += ["--announce", str(directory / "process"), "--start-lock", str(lock)]
    with open(directory / "broker.log", "a+b") as broker_log:
        return subprocess.Popen(  # nosec B603 # our own module, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=broker_log,
            start_new_session=True,
            pass_fds=[lock],
        )


def _read_first_line_or_kill_if_given_up(
    process: subprocess.Popen[bytes],
    directory: Path,
    is_given_up: Callable[[], bool],
    on_step: OnStartStep,
) -> str:
    """Return the first line that the broker process prints, as long as its recovery may take.

    A broker that ends before prints none. Kills it where the wait is given up.
    """
    assert process.stdout is not None
    progress = WaitProgress(directory)
    output, is_opened = b"", False
    while b"\n" not in output:
        if is_given_up():
            process.kill()
            break
        if not is_opened and is_broker_alive(directory):
            is_opened = True
            on_step(BrokerStartStep.OPENED, process.pid)
        progress.log_if_due()
        wait_s = _LOOK_INTERVAL_S if is_opened else _OPENING_INTERVAL_S
        ready, _, _ = select.select([process.stdout], [], [], wait_s)
        if ready:
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                break
            output += chunk
    if not is_opened:  # it was quicker than the looks
        on_step(BrokerStartStep.OPENED, process.pid)
    process.stdout.close()
    return output.decode(errors="replace") if b"\n" in output else ""
