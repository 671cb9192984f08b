"""Start the embedded broker, or find the one another worker has started in a state directory.

The broker is a process of its own and outlives the worker that started it: the others go on. The
first worker to need it holds a lock while it starts it; if it is gone while they run, the first one
to miss it starts it again on the same port. `<state_dir>/broker/process` has its address and, in
the second line, its process id, so that it can be ended.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

from streams.errors import ConfigError
from streams.settings.config import EMBEDDED, StreamsConfig

_START_TIMEOUT_S = 30.0


def broker_command(data_dir: Path, port: int, host: str, settings: list[str]) -> list[str]:
    """Return the command line that runs a broker process."""
    command = [sys.executable, "-m", "coordinator", "--data", str(data_dir)]
    command += ["--port", str(port), "--host", host]
    for setting in settings:
        command += ["--set", setting]
    return command


def resolve_bootstrap_servers(config: StreamsConfig) -> str:
    """Return the bootstrap servers; start the embedded broker if it is set and none answers.

    Raises ConfigError if it does not start, or `connection` is set, which it has no use for.
    """
    if config.bootstrap_servers == EMBEDDED:
        if config.connection:
            raise ConfigError(
                f"connection has {', '.join(sorted(config.connection))}, but bootstrap_servers is "
                "'embedded', a broker on this machine without TLS and SASL: set bootstrap_servers "
                "to host:port of the secured cluster"
            )
        return ensure_embedded_broker(config.state_dir)
    return config.bootstrap_servers


def ensure_embedded_broker(state_dir: Path) -> str:
    """Return the address of the broker in `state_dir`; start a broker if none answers.

    Raises ConfigError if it does not start; the message ends with the last line of its log.
    """
    directory = state_dir / "broker"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"state_dir {str(state_dir)!r} can't be written ({error.strerror}): "
            "choose another with state_dir=..., MILLRACE_STATE_DIR or --state-dir"
        ) from error
    process_file = directory / "process"
    with open(directory / "starting.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        last = process_file.read_text().split()[0] if process_file.exists() else ""
        if last and _accepts_connections(last):
            return last
        # Its last port is tried first, so that clients that still run find it again.
        port = int(last.rpartition(":")[2]) if last else 0
        address, _ = _start_broker(directory, list({port: None, 0: None}))
        return address


def require_embedded_broker(state_dir: Path) -> None:
    """Raise ConfigError if no broker answers in `state_dir`; none is started."""
    process_file = state_dir / "broker" / "process"
    address = process_file.read_text().split()[0] if process_file.exists() else ""
    if not address or not _accepts_connections(address):
        raise ConfigError(
            f"no embedded broker runs in {str(state_dir)!r}: name the application's brokers with "
            "--bootstrap-servers, or its state directory with --state-dir"
        )


def refuse_embedded_directory(data: Path) -> None:
    """Raise ConfigError if `data` belongs to an embedded broker and is not where its topics are.

    A broker would take it for an empty directory, and the application would not find its topics.
    """
    topics = next(
        (each for each in (data / "broker" / "data", data / "data") if each.is_dir()), None
    )
    if topics is None or not (topics.parent / "process").exists():
        return
    raise ConfigError(
        f"--data {str(data)!r} belongs to an application whose embedded broker has its topics in "
        f"{str(topics)!r}, and which starts that broker itself: name another directory; or, once "
        f"that broker is stopped, run it by `millrace broker --data {topics}`"
    )


def restart_embedded_broker(state_dir: Path, address: str) -> int | None:
    """Restart the broker in `state_dir` at its `address`, and return its process id.

    Returns None if another process has restarted it meanwhile. The address must stay the same
    because its clients look for it there. Raises ConfigError if it does not start there, OSError if
    the directory is gone.
    """
    directory = state_dir / "broker"
    # Opened with "r+", which fails if the directory is gone and creates no file.
    with open(directory / "starting.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _accepts_connections(address):
            return None
        _, pid = _start_broker(directory, [int(address.rpartition(":")[2])])
        return pid


def _accepts_connections(address: str) -> bool:
    """Return whether something accepts connections at `address` within 2 s."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def _start_broker(directory: Path, ports: list[int]) -> tuple[str, int]:
    """Start a broker on the first free one of `ports`; return its address and process id.

    Writes both to the file `process`. The caller holds the lock. Raises ConfigError.
    """
    data = directory / "data"
    for port in ports:
        with open(directory / "broker.log", "a+b") as log:
            process = subprocess.Popen(
                broker_command(data, port, "127.0.0.1", []),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            output = _read_first_line(process)
        if output.startswith("listening on "):
            address = output.removeprefix("listening on ").strip()
            process_file = directory / "process"
            new_file = process_file.with_suffix(".new")
            new_file.write_text(f"{address}\n{process.pid}\n")
            new_file.replace(process_file)
            return address, process.pid
    lines = (directory / "broker.log").read_text(errors="replace").strip().splitlines()
    why = lines[-1].removeprefix("millrace: ") if lines else "no output"
    raise ConfigError(f"the embedded broker did not start in {data}: {why}")


def _read_first_line(process: subprocess.Popen[bytes]) -> str:
    """Return the first line that the broker process prints; kill it if none comes in time."""
    assert process.stdout is not None
    deadline = time.monotonic() + _START_TIMEOUT_S
    output = b""
    while b"\n" not in output and time.monotonic() < deadline:
        ready, _, _ = select.select([process.stdout], [], [], 0.1)
        if ready:
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                break
            output += chunk
    if b"\n" not in output:
        process.kill()
        process.wait()
    process.stdout.close()
    process.returncode = 0  # it outlives us and nobody waits for it: no warning about that
    return output.decode(errors="replace")
