"""Hold a running application: its state, its health, its stores and its shutdown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, overload

from state.rocksdb import UNFLUSHED_STORES
from streams.common.host import Event, SpawnedThread
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, NotClosed, StreamsError, UserError
from streams.graph.nodes import StoreSpec
from streams.membership.group_offsets import fetch_group_offsets
from streams.monitoring.health import Health, judge_health, report_thread_health
from streams.processes.disk_watch import DiskWatch
from streams.processes.embedded import build_broker_path
from streams.processes.lifecycle import ApplicationLifecycle, LifecycleState
from streams.processes.state_cleanup import StateDirectoryCleaner
from streams.processes.thread_controls import ThreadControls
from streams.processes.worker_threads import WorkerThreads
from streams.queries.answer_ages import ThreadAssignmentTimes
from streams.queries.changelog_ends import ChangelogEnds
from streams.queries.local_stores import LocalStores
from streams.queries.read_only_stores import (
    ReadOnlyKeyValueStore,
    create_view,
    require_view_class,
)
from streams.queries.routed_reads import RoutedReads
from streams.queries.routed_store import RoutedStore
from streams.queries.stale_bounds import StaleBounds
from streams.queries.standby_reads import StandbyReader
from streams.queries.store_hosts import StoreHost
from streams.runtime.tasks.task import Task
from streams.runtime.threads.watchdog import Watchdog, describe_activity
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.config import EMBEDDED

log = logging.getLogger(__name__)

View = TypeVar("View")

GLOBAL_THREAD = "global-tables"
"""The name of the thread that copies the global tables."""


class RunningApp(ThreadControls):
    """Controls the threads of one worker; a context manager that closes at its end.

    `App.start` returns it; `streams.processes.start` makes what it is given. `watch_security` runs
    on a thread of its own until the stop. Kafka Streams' counterpart is KafkaStreams.
    """

    def __init__(
        self,
        worker: WorkerResources,
        threads: WorkerThreads,
        lifecycle: ApplicationLifecycle,
        all_threads_ended: Event,
        *,
        bootstrap_servers: str,
        watch_security: Callable[[Event], None] = lambda stop: None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.ports: dict[str, int] = {}
        """Where the settings `health_port` and `metrics_port` have led to."""
        self._worker = worker
        self._host = worker.host
        self._threads = threads.running
        self._lifecycle = lifecycle
        self._stuck_after_s = worker.config.stuck_after_ms / 1000
        self._watch_security = watch_security
        self._watchdog = Watchdog(
            self._threads,
            worker.host,
            all_threads_ended,
            stuck_after_s=self._stuck_after_s,
            is_outage_told=self._is_outage_logged,
        )
        super().__init__(worker.control, threads, lifecycle, self._watchdog)
        self._cleaner = StateDirectoryCleaner(
            worker.directory,
            worker.host,
            all_threads_ended,
            delay_ms=worker.config.state_cleanup_delay_ms,
            list_running_tasks=lambda: {
                task.directory for task in (*self._list_tasks(), *self._list_standby_tasks())
            },
        )
        config = worker.config
        is_embedded = config.bootstrap_servers == EMBEDDED
        self._disk_watch = DiskWatch(
            worker.directory,
            build_broker_path(config.state_dir) / "data" if is_embedded else None,
            worker.host,
            worker.stop,
        )
        self.local_stores = LocalStores(
            worker.topology,
            list_tasks=self._list_tasks,
            list_assignments=self._list_assignments,
            fetch_partition_counts=self._fetch_partition_counts,
            monotonic_s=worker.host.monotonic_s,
            now_ms=worker.host.now_ms,
            session_timeout_s=config.session_timeout_ms / 1000,
            create_standby_reader=self._create_standby_reader,
        )
        self._sampling = ThreadPoolExecutor(1, thread_name_prefix="changelog-ends")
        self.reads: RoutedReads | None = None
        """Reads the stores of all workers; None before the worker starts."""
        self._replication_thread: SpawnedThread | None = None
        self._watchdog_thread: SpawnedThread | None = None
        self._cleanup = ExitStack()

    def _is_outage_logged(self) -> bool:
        """Return whether the log says that no broker answers, or that a leader is away."""
        outage = self._worker.outage
        return outage is not None and bool(outage.describe_any_outage())

    def start_threads(self, cleanup: ExitStack) -> None:
        """Start the stream threads and those beside them; `cleanup` is closed when they have ended.

        `cleanup` holds what the worker keeps open: its directory, global tables and endpoints.
        """
        self._cleanup = cleanup
        for thread in self._threads:
            thread.start_thread()
        spawn = self._host.spawn_thread
        self._replication_thread = spawn(GLOBAL_THREAD, self._replicate_global_tables)
        self._watchdog_thread = spawn("watchdog", self._watchdog.watch_until_stopped)
        spawn("cleanup", self._cleaner.clean_until_stopped)
        spawn("disks", self._disk_watch.watch_until_stopped)
        outage = self._worker.outage
        if outage is not None:
            spawn("leaders", lambda: outage.leaders.watch_until_stopped(self._worker.stop))
        spawn("security", lambda: self._watch_security(self._worker.stop))

    @property
    def state(self) -> LifecycleState:
        """Return CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING or an error state.

        The error states are PENDING_ERROR and ERROR.
        """
        return self._lifecycle.state

    def wait_for(self, state: str, timeout: float = 30) -> None:
        """Wait until the application's state is `state`.

        Raises the error that ends the application before that, StreamsError after `timeout`
        seconds, or ValueError for a state that there is not.
        """
        try:
            awaited = LifecycleState(state)
        except ValueError:
            states = ", ".join(LifecycleState)
            raise ValueError(f"there is no state {state!r}: it is one of {states}") from None
        self._lifecycle.wait_for(awaited, timeout)

    def metrics(self) -> dict[str, int]:
        """Return the counters summed over all threads, and the numbers of tasks now.

        `tasks` are the active ones, `standby_tasks` those that follow. The counters are records,
        commits, rebalances, restored_records, standby_records, recoveries (all, and by kind) and
        replaced_threads.
        """
        totals: dict[str, int] = {
            "tasks": len(self._list_tasks()),
            "standby_tasks": len(self._list_standby_tasks()),
        }
        counters = [thread.sum_counters() for thread in self._threads]
        if self._worker.global_tables is not None:
            counters.append(self._worker.global_tables.count_failures())
        for each in counters:
            for name, value in each.items():
                totals[name] = totals.get(name, 0) + value
        return totals

    @overload
    def store(self, name: str) -> ReadOnlyKeyValueStore[Any, Any] | Any: ...
    @overload
    def store(self, name: str, view_class: type[View]) -> View: ...
    def store(self, name: str, view_class: type[Any] | None = None) -> Any:
        """Return a read-only view of a store with what this worker's tasks have committed.

        Its class follows from the kind of the store: `ReadOnlyKeyValueStore`, and for others
        `ReadOnlyWindowStore`, `ReadOnlySessionStore` or `ReadOnlyVersionedStore`. A global table
        has a `ReadOnlyGlobalStore`, and may be named by its topic. `view_class` names the one that
        is expected, for an editor or a type checker, as Kafka Streams' QueryableStoreTypes do; with
        types, as `ReadOnlyKeyValueStore[str, int]`, results have these. Raises ConfigError for a
        store that the topology doesn't have, or has of another kind.
        """
        tables = self._worker.global_tables
        global_store = self._worker.topology.resolve_global_store(name)
        if tables is not None and global_store is not None:
            copy = tables.find_read_only_store(global_store)
            return require_view_class(name, copy, view_class)
        view = create_view(self.local_stores.create_provider(name))
        return require_view_class(name, view, view_class)

    def query(
        self, name: str, timeout: float = 5.0, *, stale_ok: StaleBounds | None = None
    ) -> RoutedStore[Any, Any]:
        """Return a store as all workers have it; each read ends within `timeout` seconds.

        With `stale_ok` standby tasks answer as well, if they are within these bounds. Other workers
        answer on their `query_port`. Raises ConfigError for a store that the topology does not
        have, or of which every worker has a copy of its own (`store`).
        """
        if self._worker.topology.resolve_global_store(name) is not None:
            raise ConfigError(f"every worker has a copy of {name!r}: read it by store({name!r})")
        self.local_stores.find_store(name)
        assert self.reads is not None, "the worker has not been started"
        return RoutedStore(self.reads, name, timeout, stale_ok=stale_ok)

    def metadata_for_store(self, name: str) -> list[StoreHost]:
        """Return the workers with a `query_port` that have each partition of a store.

        Active ones come before standbys, by partition; a standby of this worker has its lag.
        Raises ConfigError for a store that the topology does not have. Kafka Streams'
        streamsMetadataForStore.
        """
        lags = self.local_stores.measure_standby_lags(name)
        own = self._worker.endpoint
        return [
            each._replace(lag=lags.get(each.partition))
            if each.role == "standby" and each.address == own
            else each
            for each in self.local_stores.list_hosts(name)
        ]

    def metadata_for_key(self, name: str, key: Any) -> list[StoreHost]:
        """Return the workers that have the partition of `key`, the active one first.

        The partition is the one that Kafka's default partitioner chooses: right for what Millrace
        has repartitioned, and for inputs whose producers use it. Raises ConfigError,
        StoreUnavailable. Kafka Streams' queryMetadataForKey.
        """
        partition = self.local_stores.find_partition(name, key)
        return [each for each in self.metadata_for_store(name) if each.partition == partition]

    def health(self) -> Health:
        """Return the worker's health as of now; see `streams.monitoring.health`."""
        now_s, doing = self._host.monotonic_s(), dict(self._watchdog.activities)
        outage = self._worker.outage
        threads = [
            report_thread_health(thread, doing.get(thread.name), now_s) for thread in self._threads
        ]
        return judge_health(
            self.state,
            self._lifecycle.error,
            threads,
            doing,
            outage="" if outage is None else outage.describe_any_outage(),
            disk_troubles=self._disk_watch.troubles,
            stuck_after_s=self._stuck_after_s,
            now_s=now_s,
        )

    def ask_to_stop(self) -> None:
        """Begin the shutdown without waiting for it.

        Not from a signal handler: the thread that it interrupts may hold the lock that this takes.
        """
        self._worker.stop.set()

    def close(self, timeout: float | None = None, *, leave_group: bool = True) -> None:
        """Commit, leave the group and end; a second call does nothing.

        Without `leave_group` the worker remains a member: others get its tasks when its session is
        over, and if it starts again before that nothing moves (KIP-1153). With the streams protocol
        it comes back as another member, which ends the former membership: tasks may move.

        Raises the error that ended a thread before; or NotClosed after `timeout` seconds (default:
        shutdown_timeout_ms), which says what each thread that goes on is doing.
        """
        if timeout is None:
            timeout = self._worker.config.shutdown_timeout_ms / 1000
        if not self._lifecycle.try_begin_shutdown():
            return
        self._control.remains_in_group = not leave_group
        if not leave_group and self._worker.config.group_protocol == "streams":
            log.warning(
                "leave_group=False: with the streams protocol the worker comes back as another "
                "member, and its tasks may move then"
            )
        self.ask_to_stop()
        deadline_s = self._host.monotonic_s() + timeout
        for thread in self._threads:
            thread.join_thread(max(deadline_s - self._host.monotonic_s(), 0.0))
        if any(thread.is_alive() for thread in self._threads):
            raise NotClosed(f"not closed after {timeout:g} s: {self._describe_thread_activity()}")
        if self._watchdog_thread is not None:
            self._watchdog_thread.join()
        if self._replication_thread is not None:
            self._replication_thread.join(max(deadline_s - self._host.monotonic_s(), 0.0))
            if self._replication_thread.is_alive():
                raise NotClosed(f"not closed after {timeout:g} s: global tables are being copied")
        self._cleanup.close()
        # After the server of queries, whose last requests have changelogs sampled.
        self._sampling.shutdown(wait=False, cancel_futures=True)
        UNFLUSHED_STORES.log_warning()
        self._lifecycle.finish_shutdown()

    def __enter__(self) -> RunningApp:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _list_tasks(self) -> list[Task]:
        """Return the active tasks that this worker's threads have now."""
        return [task for thread in self._threads for task in thread.current_tasks()]

    def _list_assignments(self) -> list[ThreadAssignmentTimes]:
        """Return the assignment of each thread of this worker, with its times."""
        return [
            ThreadAssignmentTimes(
                thread.name, thread.loop.assignment, *thread.loop.assigned_and_confirmed_at_s
            )
            for thread in self._threads
        ]

    def _fetch_partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of every topic. Raises OutcomeUnknown or StreamsError."""
        return self._threads[0].loop.admin.fetch_partition_counts()

    def _list_standby_tasks(self) -> list[Task]:
        """Return the standby and warm-up tasks that this worker's threads have now."""
        return [task for thread in self._threads for task in thread.loop.standby_tasks]

    def _create_standby_reader(self, spec: StoreSpec, prefix: str) -> StandbyReader:
        """Create the reader of a store in the standby tasks of this worker."""
        worker = self._worker
        fetch_inputs = partial(
            fetch_group_offsets,
            worker.open_connection,
            worker.topology.application_id,
            require_stable=False,
        )
        ends = ChangelogEnds(self._fetch_ends, fetch_inputs, self._host.monotonic_s, self._sampling)
        return StandbyReader(spec, prefix, self._list_standby_tasks, ends, self._host.now_ms)

    def _fetch_ends(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> Mapping[Partition, int]:
        """Return the ends of partitions, by a client of the first thread's present loop.

        Raises OutcomeUnknown or StreamsError.
        """
        return self._threads[0].loop.admin.fetch_latest_offsets(partitions, timeout_s)

    def _describe_thread_activity(self) -> str:
        """Describe the present activity of each thread, for the message of NotClosed."""
        self._watchdog.inspect_threads()
        now_s = self._host.monotonic_s()
        return "; ".join(
            f"{name} {describe_activity(doing, now_s)}"
            for name, doing in self._watchdog.activities.items()
        )

    def _replicate_global_tables(self) -> None:
        """Replicate the global tables until the stop; an error ends the application."""
        try:
            if self._worker.global_tables is not None:
                self._worker.global_tables.copy_until_stopped(self._worker.stop)
        except UserError as error:
            self._lifecycle.fail_application(error)
        except Exception as error:
            log.exception("the global tables ended")
            self._lifecycle.fail_application(StreamsError(f"the global tables ended: {error!r}"))
