"""Run one broker as the process that it is: signals, faults from a file, and the exit.

Trace: `__main__` -> here -> `broker`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import uvloop

from coordinator.broker import Broker
from coordinator.clock import Clock
from coordinator.config import BrokerConfig
from coordinator.fault_file import read_faults
from coordinator.faults import Faults, WrongFault

log = logging.getLogger(__name__)

# The event loop waits so long for a thread that computes, as a scrape or the cleaner does. A
# request may wait twice, and Python's own 5 ms is longer than most requests take
# (`python -m benchmarks.scrapes`).
_SWITCH_INTERVAL_S = 0.001


async def _run_until_stopped(
    config: BrokerConfig,
    on_listening: Callable[[str, int], None],
    faults_file: Path | None,
    clock: Clock | None,
) -> None:
    faults = Faults()
    broker = Broker(config, clock=clock, faults=faults)
    loop = asyncio.get_running_loop()
    if faults_file is not None:
        faults.replace(read_faults(faults_file))
        loop.add_signal_handler(signal.SIGHUP, _reload_faults_or_log, faults, faults_file)
    with ExitStack() as handlers:  # uvloop leaves them to a loop that is closed
        for name in (signal.SIGTERM, signal.SIGINT):
            handlers.callback(signal.signal, name, signal.getsignal(name))
            handlers.callback(loop.remove_signal_handler, name)
            loop.add_signal_handler(name, broker.request_stop)
        await _serve_until_stopped(broker, on_listening)


async def _serve_until_stopped(broker: Broker, on_listening: Callable[[str, int], None]) -> None:
    """Start a broker, serve until it is told to stop, and stop it. Raises its failure."""
    await broker.start()
    # The objects made so far live as long as the broker. A full garbage collection that visits
    # them holds up requests for 8 ms while a log is compacted, one that doesn't for 2 (measured).
    gc.freeze()
    with ExitStack() as exits:
        exits.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        try:
            on_listening(broker.host, broker.port)
            await broker.wait_for_stop_request()
        finally:
            await broker.stop()
    if broker.failure is not None:
        raise broker.failure


def _reload_faults_or_log(faults: Faults, file: Path) -> None:
    """Replace the faults by those in the file; keep the present ones if the file is wrong."""
    try:
        faults.replace(read_faults(file))
    except WrongFault as error:
        log.error("the faults stay as they were: %s", error)


def run_broker(
    config: BrokerConfig,
    on_listening: Callable[[str, int], None],
    faults_file: Path | None = None,
    clock: Clock | None = None,
) -> None:
    """Run a broker until SIGTERM or SIGINT.

    `on_listening` is called with the host and port once it listens. The faults of `faults_file` are
    set before it starts, and read again at each SIGHUP. `clock` replaces the system's.

    Raises: UnusableDataDirectory, CannotListen or WrongFault before it listens; BrokenInvariant if
    it had to stop to protect its data.
    """
    uvloop.run(_run_until_stopped(config, on_listening, faults_file, clock))
