"""An application while it runs: its threads, its state as a whole, and its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from types import TracebackType
from uuid import uuid4

from state.directory import ProcessSlot, StateDirectory
from state.errors import StateError
from state.rocksdb import MemoryBudget
from streams.config import StreamsConfig
from streams.embedded import bootstrap_address
from streams.errors import ConfigError, StreamsError, UserError
from streams.membership.connection import Connection, ConnectionLost
from streams.runtime.assembly import Worker, stream_loop
from streams.runtime.assignment import check_inputs
from streams.runtime.clients import Clients
from streams.runtime.commit import Step
from streams.runtime.host import ThreadHost
from streams.runtime.loop import StreamLoop
from streams.runtime.offsets import check_sizes
from streams.topology.build import Topology

log = logging.getLogger(__name__)

_BROKER_WAIT_S = 10.0


class State(StrEnum):
    """Kafka Streams' states of an application, and the transitions between them.

    CREATED -> REBALANCING <-> RUNNING -> PENDING_SHUTDOWN -> NOT_RUNNING
                    |             |
                    +-------------+-----> PENDING_ERROR -> ERROR
    """

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


class RunningApp:
    """The threads of one worker. Made by `App.start`; a context manager that closes at its end."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        *,
        reached: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._host = ThreadHost()
        self._stop = self._host.event()
        self._changed = threading.Condition()
        self._state = State.CREATED
        self._error: UserError | None = None
        self.bootstrap_servers = servers = bootstrap_address(config)
        clients = Clients(topology.application_id, config, servers)
        clients.check_settings()
        admin = clients.admin()
        counts = admin.partition_counts_at_start(_BROKER_WAIT_S)
        check_inputs(topology, counts, servers, config.handlers.topics())
        check_sizes(topology, admin.metadata_bytes_max())
        try:
            directory = StateDirectory(config.state_dir, topology.application_id)
            self._slot: ProcessSlot = directory.claim_slot(uuid4)
        except StateError as error:
            raise ConfigError(str(error)) from error
        self._thread_states: dict[int, str] = {}
        try:
            worker = Worker(
                id=str(self._slot.id),
                topology=topology,
                config=config,
                clients=clients,
                directory=directory,
                host=self._host,
                dial=self._dial,
                stop=self._stop,
                memory=MemoryBudget(config.rocksdb_memory_max_bytes),
            )
            self._loops = [
                stream_loop(
                    worker, number, changed=partial(self._thread_changed, number), reached=reached
                )
                for number in range(config.num_stream_threads)
            ]
        except BaseException:
            self._slot.release()
            raise
        self._threads = [
            threading.Thread(target=self._run, args=(loop,), name=f"stream-{number}", daemon=True)
            for number, loop in enumerate(self._loops)
        ]
        self._threads_left = len(self._threads)
        for thread in self._threads:
            thread.start()

    @property
    def state(self) -> str:
        """CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR or ERROR."""
        return self._state.value

    def wait_for(self, state: str, timeout: float = 30) -> None:
        """Wait until the state is `state`. Raises the error that ended the application first, or
        StreamsError after `timeout` seconds."""
        wanted = State(state)
        with self._changed:
            self._changed.wait_for(
                lambda: self._state is wanted or self._error is not None, timeout
            )
            if self._error is not None and wanted is not State.ERROR:
                raise self._error
            if self._state is not wanted:
                raise StreamsError(f"still {self.state} and not {state} after {timeout:g} s")

    def metrics(self) -> dict[str, int]:
        """Sums over the threads: records, commits, rebalances, restored_records, recoveries."""
        totals: dict[str, int] = {}
        for loop in self._loops:
            for name, value in asdict(loop.counters).items():
                totals[name] = totals.get(name, 0) + value
        return totals

    def ask_to_stop(self) -> None:
        """Begin to close; safe in a signal handler."""
        self._stop.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until all threads have ended, and raise what ended them."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            # In slices: a signal handler runs between them.
            while thread.is_alive() and (deadline is None or time.monotonic() < deadline):
                thread.join(0.2)
        if not any(thread.is_alive() for thread in self._threads):
            self._slot.release()
        if self._error is not None:
            raise self._error

    def close(self, timeout: float = 60) -> None:
        """Commit, leave the group and end; a second time does nothing.

        Raises the error that ended a thread before, or StreamsError after `timeout` seconds.
        """
        with self._changed:
            if self._state is State.NOT_RUNNING:
                return
            if self._error is None:
                self._become(State.PENDING_SHUTDOWN)
        self.ask_to_stop()
        self.join(timeout)
        if any(thread.is_alive() for thread in self._threads):
            raise StreamsError(f"not closed after {timeout:g} s: a thread is still busy")
        with self._changed:
            self._become(State.NOT_RUNNING)

    def __enter__(self) -> RunningApp:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _dial(self, address: tuple[str, int] | None) -> Connection:
        if address is not None:
            return Connection(address, "millrace", _BROKER_WAIT_S, self._host.lock())
        failure: ConnectionLost | None = None
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                address = host, int(port)
                return Connection(address, "millrace", _BROKER_WAIT_S, self._host.lock())
            except ConnectionLost as error:
                failure = error
        raise failure or ConnectionLost(f"no address in {self.bootstrap_servers!r}")

    def _run(self, loop: StreamLoop) -> None:
        try:
            loop.run()
        except UserError as error:
            self._failed(error)
        except Exception as error:
            log.exception("a stream thread ended")
            self._failed(StreamsError(f"a stream thread ended: {error!r}"))
        finally:
            with self._changed:
                self._threads_left -= 1
                if not self._threads_left and self._error is not None:
                    self._become(State.ERROR)

    def _failed(self, error: UserError) -> None:
        """The first error ends the application; the other threads commit and leave."""
        with self._changed:
            if self._error is None:
                self._error = error
            self._become(State.PENDING_ERROR)
        self._stop.set()

    def _thread_changed(self, number: int, state: str) -> None:
        with self._changed:
            self._thread_states[number] = state
            if self._state in (State.CREATED, State.REBALANCING, State.RUNNING):
                states = set(self._thread_states.values())
                all_run = len(self._thread_states) == len(self._loops) and states == {"RUNNING"}
                self._become(State.RUNNING if all_run else State.REBALANCING)

    def _become(self, state: State) -> None:
        if self._state is not state:
            log.info("state %s -> %s", self._state.value, state.value)
            self._state = state
            self._changed.notify_all()
