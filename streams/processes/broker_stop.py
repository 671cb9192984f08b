"""Look at the embedded broker of a state directory, and stop it.

Workers start a broker again that they miss. So it is stopped only when no worker of this directory
runs, each of which holds a lock (`state.directory`), and while nobody else may start one.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

from state.directory import LOCK_FILE
from state.errors import DirectoryLocked
from state.locks import exclude_owner
from streams.common.addresses import parse_address
from streams.errors import ConfigError
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.processes.broker_start import hold_start_lock, is_broker_alive
from streams.processes.embedded import build_broker_path, read_announcement

_LOOK_INTERVAL_S = 0.05


class EmbeddedBrokerStatus(NamedTuple):
    """Says whether the embedded broker of a state directory runs, and where.

    `address` and `process_id` are None where it does not run, or the file that names them is not of
    this directory's broker. `workers` are the workers of this machine that run on the directory, as
    `application/process-N`. `is_answering` is None unless it was asked whether the broker answers.
    """

    is_running: bool
    address: str | None
    process_id: int | None
    data: str
    workers: list[str]
    is_answering: bool | None = None


def probe_broker(state_dir: Path, timeout_s: float) -> EmbeddedBrokerStatus:
    """Return the status of the embedded broker, and whether it answers within `timeout_s`.

    The kernel accepts connections for a process that is stopped (SIGSTOP), so it is sent a request.
    """
    found = read_broker_status(state_dir)
    if found.address is None:
        return found
    try:
        BrokerConnection(
            parse_address(found.address), "millrace", timeout_s, threading.Lock()
        ).close()
    except ConnectionLost:
        return found._replace(is_answering=False)
    return found._replace(is_answering=True)


def read_broker_status(state_dir: Path) -> EmbeddedBrokerStatus:
    """Return the status of the embedded broker of a state directory; nothing is started."""
    directory = build_broker_path(state_dir)
    is_running = is_broker_alive(directory)
    announced = read_announcement(directory) if is_running else None
    return EmbeddedBrokerStatus(
        is_running,
        None if announced is None else announced.address,
        None if announced is None else announced.process_id,
        str(directory / "data"),
        _list_workers(state_dir),
    )


def stop_broker(state_dir: Path, timeout_s: float) -> EmbeddedBrokerStatus:
    """Stop the embedded broker by SIGTERM, wait until it has ended, and return what it was.

    Raises ConfigError if none runs, if workers run that would start it again, if its process is not
    known, or if it has not ended after `timeout_s` seconds.
    """
    directory = build_broker_path(state_dir)
    if not directory.is_dir() or not is_broker_alive(directory):
        raise ConfigError(f"no embedded broker runs in {str(state_dir)!r}")
    deadline_s = time.monotonic() + timeout_s
    with hold_start_lock(directory, lambda: time.monotonic() > deadline_s, must_exist=True):
        found = read_broker_status(state_dir)
        if found.workers:
            raise ConfigError(
                f"workers run that would start the embedded broker again: "
                f"{', '.join(found.workers)} in {str(state_dir)!r}. End them first"
            )
        if found.process_id is None:
            raise ConfigError(
                f"the process of the embedded broker is not known: {str(directory / 'process')!r} "
                f"is damaged or of another directory. `fuser {directory / 'data' / '.lock'}` shows "
                "it: end it by SIGTERM"
            )
        os.kill(found.process_id, signal.SIGTERM)
        while is_broker_alive(directory):
            if time.monotonic() > deadline_s:
                raise ConfigError(
                    f"the embedded broker, process {found.process_id}, has not ended after "
                    f"{timeout_s:g} s; {str(directory / 'broker.log')!r} says what it does"
                )
            time.sleep(_LOOK_INTERVAL_S)
    return found


def _list_workers(state_dir: Path) -> list[str]:
    """Return the workers that run on a state directory, as `application/process-N`."""
    found = []
    for lock in sorted(state_dir.glob(f"*/process-*/{LOCK_FILE}")):
        try:
            with exclude_owner(lock):
                pass
        except DirectoryLocked:
            found.append(f"{lock.parts[-3]}/{lock.parts[-2]}")
    return found
