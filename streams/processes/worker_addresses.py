"""Note where a worker answers /metrics, for commands on its machine that look for its workers.

The address is a file in the directory of the worker's slot. One that a killed worker has left says
nothing: only the slots that a process has locked are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from state.directory import LOCK_FILE, ProcessSlot, StateDirectory
from state.errors import DirectoryLocked
from state.locks import exclude_owner
from streams.common.addresses import format_address

_ADDRESS_FILE = "metrics-address"
_LOCAL_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # nosec B104 # nothing is bound here


def note_metrics_address(
    directory: StateDirectory,
    slot: ProcessSlot,
    health_host: str,
    ports: Mapping[str, int],
    exits: ExitStack,
) -> None:
    """Write the address of a worker's /metrics to its slot until `exits` is closed.

    `ports` are those that the settings have led to; without any, nothing is written.
    """
    if not ports:
        return
    path = directory.path / f"process-{slot.number}" / _ADDRESS_FILE
    host = _LOCAL_HOSTS.get(health_host, health_host)
    exits.callback(path.unlink, missing_ok=True)
    with suppress(OSError):  # a worker without it runs, and commands need its address
        written = path.with_suffix(".new")
        written.write_text(format_address((host, next(iter(ports.values())))))
        written.replace(path)  # so that no command reads a part of it


def list_worker_addresses(state_dir: Path, application_id: str) -> tuple[list[str], int]:
    """Return the addresses of an application's workers that run on a state directory.

    With them comes how many workers run there that have no address.
    """
    addresses, without = [], 0
    for lock in sorted((state_dir / application_id).glob(f"process-*/{LOCK_FILE}")):
        try:
            with exclude_owner(lock):
                continue
        except DirectoryLocked:
            pass
        try:
            addresses.append((lock.parent / _ADDRESS_FILE).read_text())
        except OSError:
            without += 1
    return addresses, without
