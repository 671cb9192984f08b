"""Run an application in the background: its threads, its state, its health and its shutdown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from types import TracebackType
from uuid import uuid4

from state.directory import StateDirectory
from state.errors import StateError
from state.rocksdb import MemoryBudget
from streams.common.host import SystemHost
from streams.errors import ConfigError, NotClosed, OutcomeUnknown, StreamsError, UserError
from streams.ledger import ledger_topic
from streams.monitoring.health import Health, judge_health, report_thread_health
from streams.monitoring.http_endpoint import HttpEndpoint, HttpResponse
from streams.monitoring.metrics import WorkerCollector, render_prometheus_text
from streams.processes.broker_connector import BROKER_WAIT_S, BrokerConnector
from streams.processes.embedded import resolve_bootstrap_servers
from streams.queries.local import LocalStore
from streams.runtime.assembly import WorkerResources
from streams.runtime.assignment import check_topics
from streams.runtime.clients import KafkaClientSupplier
from streams.runtime.commit import CommitStep
from streams.runtime.global_tables import GlobalTables, ReadOnlyGlobalStore, open_replicas
from streams.runtime.internal_topics import LEDGER_SETTINGS
from streams.runtime.offset_metadata import check_metadata_sizes
from streams.runtime.progress import RestoreListener
from streams.runtime.state_cleanup import StateDirectoryCleaner
from streams.runtime.stream_thread import StreamThread
from streams.runtime.watchdog import Watchdog, describe_activity
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology

log = logging.getLogger(__name__)

_THREAD_ENDED = "ENDED"
_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class ApplicationState(StrEnum):
    """Names the states of an application (Kafka Streams' KafkaStreams.State) and the transitions.

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
    """Runs the threads of one worker; a context manager that closes at its end.

    Made by `App.start`. `number` tells workers apart that one command has started: ports are
    counted up by it.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        *,
        on_step: Callable[[CommitStep], None] = lambda step: None,
        number: int = 0,
        restore_listener: RestoreListener | None = None,
    ) -> None:
        self._topology = topology
        self._config = config
        self._host = SystemHost()
        self._stop = self._host.create_event()
        self._all_ended = self._host.create_event()
        self._state_changed = threading.Condition()
        self._state = ApplicationState.CREATED
        self._error: UserError | None = None
        self.bootstrap_servers = servers = resolve_bootstrap_servers(config)
        clients = KafkaClientSupplier(topology.application_id, config, servers)
        clients.check_user_settings()
        admin = clients.create_admin(retry_s=BROKER_WAIT_S)
        counts = admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
        check_topics(topology, counts, servers, config.handlers.dead_letter_topics())
        metadata_bytes_max = admin.fetch_metadata_bytes_max()
        check_metadata_sizes(topology, metadata_bytes_max)
        if config.ledger:
            topic = ledger_topic(topology.application_id)
            try:
                admin.create_topics({topic: 1}, {topic: LEDGER_SETTINGS}, config.replication_factor)
            except OutcomeUnknown as error:
                raise ConfigError(f"the ledger can't be made: {error}") from error
        with ExitStack() as exits:
            try:
                directory = StateDirectory(config.state_dir, topology.application_id)
                slot = directory.claim_slot(uuid4)
            except StateError as error:
                raise ConfigError(str(error)) from error
            exits.callback(slot.release_lock)
            memory = MemoryBudget(config.rocksdb_memory_max_bytes)
            worker = WorkerResources(
                process_id=str(slot.id),
                topology=topology,
                config=config,
                clients=clients,
                directory=directory,
                host=self._host,
                open_connection=BrokerConnector(config, servers, self._host, self._stop),
                stop=self._stop,
                metadata_bytes_max=metadata_bytes_max,
                memory=memory,
                restore_listener=restore_listener,
                global_tables=self._open_global_tables(
                    clients, directory, slot.number, memory, exits
                ),
            )
            self._globals = worker.global_tables
            self._thread_states: dict[int, str] = {}
            self._threads = [
                self._create_thread(worker, each, on_step)
                for each in range(config.num_stream_threads)
            ]
            self._watchdog = Watchdog(
                self._threads,
                self._host,
                self._all_ended,
                stuck_after_s=config.stuck_after_ms / 1000,
            )
            self.ports: dict[str, int] = {}
            """Where the settings `health_port` and `metrics_port` have led to."""
            for endpoint in self._start_endpoints(number):
                exits.callback(endpoint.close)
            self._cleanup = exits.pop_all()
        self._running_thread_count = len(self._threads)
        for thread in self._threads:
            thread.start_thread()
        self._replication_thread = self._host.spawn_thread(
            "global-tables", self._replicate_global_tables
        )
        self._watchdog_thread = self._host.spawn_thread(
            "watchdog", self._watchdog.watch_until_stopped
        )
        cleaning = StateDirectoryCleaner(
            directory,
            self._host,
            self._all_ended,
            delay_ms=config.state_cleanup_delay_ms,
            list_running_tasks=lambda: {
                task.directory for thread in self._threads for task in thread.current_tasks()
            },
        )
        self._host.spawn_thread("cleanup", cleaning.clean_until_stopped)

    @property
    def state(self) -> str:
        """Return CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING or an error state.

        The error states are PENDING_ERROR and ERROR.
        """
        return self._state.value

    def wait_for(self, state: str, timeout: float = 30) -> None:
        """Wait until the application's state is `state`.

        Raises the error that ends the application before that, or StreamsError after `timeout`
        seconds.
        """
        wanted = ApplicationState(state)
        with self._state_changed:
            self._state_changed.wait_for(
                lambda: self._state is wanted or self._error is not None, timeout
            )
            if self._error is not None and wanted is not ApplicationState.ERROR:
                raise self._error
            if self._state is not wanted:
                raise StreamsError(f"still {self.state} and not {state} after {timeout:g} s")

    def metrics(self) -> dict[str, int]:
        """Return the counters summed over all threads, and the number of tasks now.

        The counters are records, commits, rebalances, restored_records, recoveries (all, and by
        kind) and replaced_threads.
        """
        totals: dict[str, int] = {"tasks": 0}
        for thread in self._threads:
            totals["tasks"] += len(thread.current_tasks())
            for name, value in thread.sum_counters().items():
                totals[name] = totals.get(name, 0) + value
        return totals

    def store(self, name: str) -> LocalStore | ReadOnlyGlobalStore:
        """Return a read-only view of a store with what this worker's tasks have committed.

        See `streams.queries.local`; Kafka Streams' interactive queries. Raises ConfigError for a
        store that the topology doesn't have.
        """
        if (
            self._globals is not None
            and (copy := self._globals.find_read_only_store(name)) is not None
        ):
            return copy
        specs = {spec.name: spec for sub in self._topology.subtopologies for spec in sub.stores}
        if name not in specs:
            raise ConfigError(f"there is no store {name!r}; there are {sorted(specs)}")
        return LocalStore(
            specs[name],
            lambda: [task for thread in self._threads for task in thread.current_tasks()],
        )

    def health(self) -> Health:
        """Return the worker's health as of now; see `streams.monitoring.health`."""
        now_s, doing = self._host.monotonic_s(), dict(self._watchdog.activities)
        threads = [
            report_thread_health(
                thread, self._thread_states.get(number, "CREATED"), doing.get(thread.name), now_s
            )
            for number, thread in enumerate(self._threads)
        ]
        return judge_health(
            self.state,
            self._error,
            threads,
            doing,
            stuck_after_s=self._config.stuck_after_ms / 1000,
            now_s=now_s,
        )

    def ask_to_stop(self) -> None:
        """Begin the shutdown without waiting for it; safe in a signal handler."""
        self._stop.set()

    def close(self, timeout: float | None = None) -> None:
        """Commit, leave the group and end; a second call does nothing.

        Raises the error that ended a thread before; or NotClosed after `timeout` seconds (default:
        shutdown_timeout_ms), which says what each thread that goes on is doing.
        """
        if timeout is None:
            timeout = self._config.shutdown_timeout_ms / 1000
        with self._state_changed:
            if self._state is ApplicationState.NOT_RUNNING:
                return
            if self._error is None:
                self._set_state(ApplicationState.PENDING_SHUTDOWN)
        self.ask_to_stop()
        deadline_s = self._host.monotonic_s() + timeout
        for thread in self._threads:
            thread.join_thread(max(deadline_s - self._host.monotonic_s(), 0.0))
        if any(thread.is_alive() for thread in self._threads):
            raise NotClosed(f"not closed after {timeout:g} s: {self._describe_thread_activity()}")
        self._watchdog_thread.join()
        self._replication_thread.join(max(deadline_s - self._host.monotonic_s(), 0.0))
        if self._replication_thread.is_alive():
            raise NotClosed(f"not closed after {timeout:g} s: global tables are being copied")
        self._cleanup.close()
        if self._error is not None:
            raise self._error
        with self._state_changed:
            self._set_state(ApplicationState.NOT_RUNNING)

    def __enter__(self) -> RunningApp:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _describe_thread_activity(self) -> str:
        """Return what each thread is doing, for the message of NotClosed."""
        self._watchdog.inspect_threads()
        now_s = self._host.monotonic_s()
        return "; ".join(
            f"{name} {describe_activity(doing, now_s)}"
            for name, doing in self._watchdog.activities.items()
        )

    def _create_thread(
        self, worker: WorkerResources, number: int, on_step: Callable[[CommitStep], None]
    ) -> StreamThread:
        """Create stream thread `number`, which reports to this object."""
        return StreamThread(
            worker,
            number,
            handler=self._config.uncaught_exception_handler,
            on_state_change=partial(self._handle_thread_state, number),
            on_failure=self._fail_application,
            on_end=partial(self._handle_thread_end, number),
            on_step=on_step,
        )

    def _open_global_tables(
        self,
        clients: KafkaClientSupplier,
        directory: StateDirectory,
        slot: int,
        memory: MemoryBudget,
        cleanup: ExitStack,
    ) -> GlobalTables | None:
        """Open the replicas of the global tables in this worker's own part of the directory."""
        tables = self._topology.global_tables
        if not tables:
            return None
        replicas = open_replicas(
            tables, lambda store: directory.global_store_path(slot, store), memory
        )
        for replica in replicas.values():
            cleanup.callback(replica.close)
        return GlobalTables(
            tables,
            replicas,
            create_consumer=lambda: clients.create_restore_consumer("global"),
            admin=clients.create_admin(),
            host=self._host,
            handler=self._config.handlers.deserialization,
            timeout_ms=self._config.task_timeout_ms,
        )

    def _replicate_global_tables(self) -> None:
        """Replicate the global tables until the stop; an error ends the application."""
        try:
            if self._globals is not None:
                self._globals.copy_until_stopped(self._stop)
        except UserError as error:
            self._fail_application(error)
        except Exception as error:
            log.exception("the global tables ended")
            self._fail_application(StreamsError(f"the global tables ended: {error!r}"))

    def _start_endpoints(self, worker_number: int) -> Iterator[HttpEndpoint]:
        """Yield the HTTP endpoints that the settings ask for, listening.

        Raises ConfigError if a port is not available.
        """
        collector = WorkerCollector(
            self.health,
            lambda: {thread.name: thread.sum_counters() for thread in self._threads},
            self._host.now_ms,
        )

        def answer_health() -> HttpResponse:
            report = self.health()
            return HttpResponse(200 if report.healthy else 503, _JSON, report.as_json())

        def answer_live() -> HttpResponse:
            report = self.health()
            return HttpResponse(200 if report.live else 503, _JSON, report.as_json())

        def answer_metrics() -> HttpResponse:
            return HttpResponse(200, _PROMETHEUS, render_prometheus_text(collector))

        answers = {"/health": answer_health, "/live": answer_live, "/metrics": answer_metrics}
        wanted = {"health_port": answers, "metrics_port": {"/metrics": answer_metrics}}
        for setting, paths in wanted.items():
            port = getattr(self._config, setting)
            same = setting == "metrics_port" and port == self._config.health_port
            if port is None or (port and same):
                continue
            endpoint = HttpEndpoint(setting, port and port + worker_number, paths, self._host)
            self.ports[setting] = endpoint.port
            log.info("%s: listening on 127.0.0.1:%d", setting, endpoint.port)
            yield endpoint

    def _fail_application(self, error: UserError) -> None:
        """Keep the first error that fails the application, and stop its threads in order."""
        with self._state_changed:
            if self._error is None:
                self._error = error
            self._set_state(ApplicationState.PENDING_ERROR)
        self._stop.set()

    def _handle_thread_end(self, number: int) -> None:
        """Note that a thread has ended; the last one with an error sets the state ERROR."""
        with self._state_changed:
            self._thread_states[number] = _THREAD_ENDED
            self._running_thread_count -= 1
            if not self._running_thread_count:
                self._all_ended.set()
                if self._error is not None:
                    self._set_state(ApplicationState.ERROR)

    def _handle_thread_state(self, number: int, state: str) -> None:
        """Note a thread's state and derive the application's: RUNNING if all threads run."""
        with self._state_changed:
            self._thread_states[number] = state
            if self._state in (
                ApplicationState.CREATED,
                ApplicationState.REBALANCING,
                ApplicationState.RUNNING,
            ):
                states = set(self._thread_states.values())
                all_run = len(self._thread_states) == len(self._threads) and states == {"RUNNING"}
                self._set_state(
                    ApplicationState.RUNNING if all_run else ApplicationState.REBALANCING
                )

    def _set_state(self, state: ApplicationState) -> None:
        """Change the state and wake those who wait for it; the caller holds the lock."""
        if self._state is not state:
            log.info("state %s -> %s", self._state.value, state.value)
            self._state = state
            self._state_changed.notify_all()
