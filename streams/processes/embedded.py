"""Start the embedded broker, or find the one another worker has started in a state directory.

The broker is a process of its own and outlives the worker that started it: the others go on. The
first worker to need it starts it (`broker_start`); if it is gone while they run, the first one to
miss it starts it again on the same port.

    <state_dir>/broker/process        its address; its process id, so that it can be ended; and the
                                      device and inode of `data`, in a line each
    <state_dir>/broker/data/.lock     locked by the broker as long as it lives
    <state_dir>/broker/starting.lock  locked by who starts it, and by the broker until it listens

An address counts only while a process holds the lock on this very directory, and if the inode is
that of this directory: in a copied directory both files are the original's, whose broker has the
same cluster id and other data. A broker that holds its lock and does not answer yet is recovering,
or is about to end: it is waited for as long as it lives. One whose address the file does not have
is waited for a while, and then an error says so.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from streams.command_lines import format_broker_command
from streams.common.addresses import is_loopback, parse_address, parse_addresses
from streams.errors import ConfigError
from streams.processes.broker_start import (
    METRICS_PORT_FILE,
    OnStartStep,
    WaitProgress,
    hold_start_lock,
    ignore_start_step,
    is_broker_alive,
    start_broker,
)
from streams.settings.config import EMBEDDED, StreamsConfig

log = logging.getLogger(__name__)

ADDRESS_WAIT_S = 60.0
"""The seconds for which a broker that lives is waited for while its address is not known."""
_LOOK_INTERVAL_S = 0.1


_BROKER_DIRECTORY = "broker"
"""The embedded broker's directory in a state directory, beside those of the applications."""


def find_or_start_bootstrap_servers(config: StreamsConfig) -> str:
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
        return ensure_embedded_broker(config.state_dir, metrics_port=config.broker_metrics_port)
    return config.bootstrap_servers


def ensure_embedded_broker(
    state_dir: Path,
    is_given_up: Callable[[], bool] = lambda: False,
    on_step: OnStartStep = ignore_start_step,
    metrics_port: int | None = None,
) -> str:
    """Return the address of the broker in `state_dir`; start a broker if none answers.

    `is_given_up` ends the wait for it, `on_step` is called at each step of a start. With
    `metrics_port` it answers Prometheus there, after this start and each later one. Raises
    ConfigError if it does not start; the message ends with the last line of its log.
    """
    directory = state_dir / _BROKER_DIRECTORY
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if metrics_port is not None:
            (directory / METRICS_PORT_FILE).write_text(f"{metrics_port}\n")
    except OSError as error:
        raise ConfigError(
            f"state_dir {str(state_dir)!r} can't be written ({error.strerror}): "
            "choose another with state_dir=..., MILLRACE_STATE_DIR or --state-dir"
        ) from error
    with hold_start_lock(directory, is_given_up) as lock:
        last = _wait_for_broker_address(directory, is_given_up)
        if last and is_broker_alive(directory):
            if metrics_port is not None and not _accepts_connections(f"127.0.0.1:{metrics_port}"):
                log.warning(
                    "broker_metrics_port is %d, but the embedded broker was started without it: it"
                    " has its figures there once it is stopped, and a worker starts it again",
                    metrics_port,
                )
            return last
        # Its last port is tried first, so that clients that still run find it again.
        port = parse_address(last)[1] if last else 0
        ports = list({port: None, 0: None})
        return start_broker(directory, ports, lock, is_given_up, on_step).address


def require_embedded_broker(state_dir: Path) -> None:
    """Raise ConfigError if no broker answers in `state_dir`; none is started."""
    directory = state_dir / _BROKER_DIRECTORY
    address = _read_address_or_empty(directory)
    if not (address and is_broker_alive(directory) and _accepts_connections(address)):
        raise ConfigError(
            f"no embedded broker runs in {str(state_dir)!r}: name the application's brokers with "
            "--bootstrap-servers, or its state directory with --state-dir"
        )


def refuse_application_of_broker_directory(config: StreamsConfig, application_id: str) -> None:
    """Raise ConfigError if an application's state would be in the embedded broker's directory.

    Both are in `state_dir`, and a reset of the application would delete the broker's topics.
    """
    if application_id != _BROKER_DIRECTORY:
        return
    if (
        config.bootstrap_servers == EMBEDDED
        or (config.state_dir / _BROKER_DIRECTORY / "process").exists()
    ):
        raise ConfigError(
            f"application id {application_id!r}: {str(config.state_dir / _BROKER_DIRECTORY)!r} is "
            "the directory of the embedded broker, and the application's state can't be there too: "
            "give another id"
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
        f"that broker is stopped, run it by {format_broker_command('', data=topics)}"
    )


def restart_embedded_broker(
    state_dir: Path, address: str, is_given_up: Callable[[], bool] = lambda: False
) -> int | None:
    """Restart the broker in `state_dir` at its `address`, and return its process id.

    Returns None if it lives, or another process has restarted it. The address must stay the same
    because its clients look for it there. `is_given_up` ends the wait for it. Raises ConfigError if
    it does not start there, OSError if the directory is gone.
    """
    directory = state_dir / _BROKER_DIRECTORY
    with hold_start_lock(directory, is_given_up, must_exist=True) as lock:
        found = _wait_for_broker_address(directory, is_given_up, known_address=address)
        if found == address and is_broker_alive(directory):
            return None
        port = parse_address(address)[1]
        return start_broker(directory, [port], lock, is_given_up).process_id


class Announcement(NamedTuple):
    """Names where the embedded broker of a directory listens, and its process."""

    address: str
    process_id: int


def build_broker_path(state_dir: Path) -> Path:
    """Return the embedded broker's directory in a state directory."""
    return state_dir / _BROKER_DIRECTORY


def read_announcement(directory: Path, *, warns: bool = True) -> Announcement | None:
    """Read the file `process` of a broker; None unless it is of this directory's broker.

    One without `process.data` beside it is taken as it is; an empty one is of a power cut.
    """
    try:
        address, process_id, *inode = (directory / "process").read_text().split()
        parse_address(address)
        with suppress(FileNotFoundError):
            inode = (directory / "process.data").read_text().split()
        if inode and inode != [_format_device_and_inode(directory / "data")]:
            if warns:
                log.warning(
                    "%s is a copy of another directory, or mounted otherwise; the broker there was "
                    "at %s, and is not this one's",
                    directory,
                    address,
                )
            return None
        return Announcement(address, int(process_id))
    except (OSError, ValueError):
        return None


def find_embedded_broker_data(state_dir: Path, bootstrap_servers: str) -> Path | None:
    """Return the data of the embedded broker that last had one of these addresses; None if none.

    Whether it runs is not looked at.
    """
    directory = build_broker_path(state_dir)
    address = _read_address_or_empty(directory, warns=False)
    if not address or parse_address(address)[1] not in {
        port for host, port in parse_addresses(bootstrap_servers) if is_loopback(host)
    }:
        return None
    return (directory / "data").absolute()


def _read_address_or_empty(directory: Path, *, warns: bool = True) -> str:
    """Return the address in the file `process`; empty where that is not known."""
    announced = read_announcement(directory, warns=warns)
    return "" if announced is None else announced.address


def _format_device_and_inode(path: Path) -> str:
    """Return the device and the inode of a directory, which no copy of it has."""
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _wait_for_broker_address(
    directory: Path,
    is_given_up: Callable[[], bool] = lambda: False,
    *,
    known_address: str = "",
) -> str:
    """Wait until the broker in `directory` accepts connections or has ended; return its address.

    Logs every ten seconds that it waits. The address is also returned of a broker that is gone, and
    is empty if it isn't known. `known_address` is tried where the file `process` has none. Raises
    ConfigError if the broker lives and there is no address for `ADDRESS_WAIT_S`.
    """
    progress = WaitProgress(directory)
    address = _read_address_or_empty(directory)
    while not is_given_up():
        is_alive = is_broker_alive(directory)
        tried = address or (known_address if is_alive else "")
        if not is_alive or (tried and _accepts_connections(tried)):
            return tried
        if not tried and progress.waited_s() > ADDRESS_WAIT_S:
            raise ConfigError(_explain_lost_address(directory))
        progress.log_if_due()
        time.sleep(_LOOK_INTERVAL_S)
        address = _read_address_or_empty(directory, warns=False)
    return address


def _explain_lost_address(directory: Path) -> str:
    """Format the message for a broker process that runs, but whose address is not known."""
    data = directory / "data"
    return (
        f"an embedded broker has {str(data)!r} open, and its address is not known: "
        f"{str(directory / 'process')!r} is damaged, or of another mount or a copy of the "
        f"directory. End that broker (`fuser {data / '.lock'}` shows its process id), and start "
        "again: its data stay; or name its address by bootstrap_servers"
    )


def _accepts_connections(address: str) -> bool:
    """Return whether something accepts connections at `address` within 2 s."""
    try:
        with socket.create_connection(parse_address(address), timeout=2):
            return True
    except OSError:
        return False
