"""Find processes of this machine that are stopped by a signal, at addresses that don't answer."""

from __future__ import annotations

import socket
from collections.abc import Collection
from typing import TypeAlias

from state.linux_calls import find_listening_process_ids, is_stopped
from streams.common.addresses import Address

ProcessId: TypeAlias = int

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def find_stopped_listeners(addresses: Collection[Address]) -> dict[Address, ProcessId]:
    """Return the stopped processes that listen at addresses of this machine, by these."""
    own = (*_LOOPBACK, socket.gethostname())
    found = {}
    for host, port in addresses:
        if host in own:
            stopped = [each for each in find_listening_process_ids(port) if is_stopped(each)]
            if stopped:
                found[host, port] = stopped[0]
    return found


def describe_stopped(process_id: int) -> str:
    """Return words for a process that is stopped, to stand behind what does not answer."""
    return f"process {process_id}, which listens there, is stopped by a signal (SIGSTOP)"


def suggest_continue_command(process_id: int) -> str:
    """Return the command that lets a stopped process go on."""
    return f"let it go on: `kill -CONT {process_id}`"
