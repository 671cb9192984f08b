"""Note where a worker answers /metrics, for commands on its machine that look for its workers.

The address is a file in the directory of the worker's slot, whose time of modification is renewed
while the worker runs. A worker that stops removes it; what a killed one leaves there tells where it
has answered, and until when.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from state.directory import LOCK_FILE, ProcessSlot, StateDirectory
from state.errors import DirectoryLocked
from state.linux_calls import is_stopped
from state.locks import exclude_owner, read_holder
from streams.common.addresses import format_address
from streams.common.host import Event, Host

WithoutAddressCount: TypeAlias = int

_ADDRESS_FILE = "metrics-address"
_LOCAL_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # nosec B104 # nothing is bound here
_RENEW_INTERVAL_S = 1.0
_REMEMBERED_S = 24 * 3_600.0
"""A killed worker that nobody has started again within a day is not missed any more."""


class ProcessCondition(Enum):
    """Says whether a worker's process runs, is stopped by a signal, or has ended unasked."""

    RUNNING = "running"
    STOPPED = "stopped"
    ENDED = "ended"


class NotedWorker(NamedTuple):
    """Represents a worker of this machine: its process, and its address if it has one.

    `renewed_at_s` is the wall-clock time at which the worker has renewed its address last.
    """

    address: str | None
    process_id: int
    condition: ProcessCondition
    renewed_at_s: float


def note_metrics_address(
    directory: StateDirectory,
    slot: ProcessSlot,
    health_host: str,
    ports: Mapping[str, int],
    host: Host,
    exits: ExitStack,
) -> None:
    """Write the address of a worker's /metrics to its slot, and renew it until `exits` is closed.

    `ports` are those that the settings have led to; without any, nothing is written, and what a
    killed worker has left in the slot is removed.
    """
    path = directory.path / f"process-{slot.number}" / _ADDRESS_FILE
    with suppress(OSError):  # a worker without an address runs
        path.unlink(missing_ok=True)
    if not ports:
        return
    shown_host = _LOCAL_HOSTS.get(health_host, health_host)
    exits.callback(path.unlink, missing_ok=True)
    with suppress(OSError):
        written = path.with_suffix(".new")
        written.write_text(format_address((shown_host, next(iter(ports.values())))))
        written.replace(path)  # so that no command reads a part of it
    closed = host.create_event()
    exits.callback(closed.set)
    host.spawn_thread("metrics-address", lambda: _renew_until_stopped(path, closed))


def _renew_until_stopped(path: Path, stop: Event) -> None:
    while not stop.wait(_RENEW_INTERVAL_S):
        with suppress(OSError):  # its directory was removed, which the disk watch tells
            os.utime(path)


def list_noted_workers(state_dir: Path, application_id: str) -> list[NotedWorker]:
    """Return the workers that hold a slot of an application's state directory.

    With them come those that were killed within the last day, and whose slot is free.
    """
    found = []
    for lock in sorted((state_dir / application_id).glob(f"process-*/{LOCK_FILE}")):
        condition = ProcessCondition.RUNNING
        try:
            with exclude_owner(lock):
                condition = ProcessCondition.ENDED
        except DirectoryLocked:
            pass
        process_id, is_of_this_host = read_holder(lock)
        is_running_here = condition is ProcessCondition.RUNNING and is_of_this_host
        if is_running_here and is_stopped(process_id):
            condition = ProcessCondition.STOPPED
        file = lock.parent / _ADDRESS_FILE
        try:
            address, renewed_at_s = file.read_text(), file.stat().st_mtime
        except OSError:
            address, renewed_at_s = None, 0.0
        is_forgotten = address is None or time.time() - renewed_at_s > _REMEMBERED_S
        if condition is not ProcessCondition.ENDED or not is_forgotten:
            found.append(NotedWorker(address, process_id, condition, renewed_at_s))
    return found


def list_worker_addresses(
    state_dir: Path, application_id: str
) -> tuple[list[str], WithoutAddressCount]:
    """Return the addresses of an application's workers that run on a state directory.

    With them comes how many workers run there that have no address.
    """
    running = [
        each
        for each in list_noted_workers(state_dir, application_id)
        if each.condition is not ProcessCondition.ENDED
    ]
    addresses = [each.address for each in running if each.address is not None]
    return addresses, len(running) - len(addresses)
