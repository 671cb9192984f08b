"""Define TopologyTestDriver, which runs an application in one process, without a broker.

Each record that is piped in is processed to the end, internal topics included, and committed: by
the product's own tasks, stores, commit and restore. Only the broker, the clock and the process are
simulated, so that a test decides when time passes, and when the process dies.

Differs from Kafka Streams' TopologyTestDriver (4.3) where that leaves something out: topics may
have several partitions, each with its task and its stores; records go through real changelogs and
transactions; the process can be killed in the middle of a commit. Elsewhere it does the same: one
record at a time, a commit after each (`commit="each_record"`), punctuations by stream time before
that commit, and the order of records between topics (`streams.testing.record_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from state.rocksdb import MemoryBudget
from streams import serdes
from streams.app import App
from streams.common.call_hints import explain_calls
from streams.common.durations import duration_to_ms
from streams.dsl.kafka_streams_names import create_missing_attribute_error
from streams.errors import ConfigError
from streams.operators.lateness import LateRecord
from streams.processor.record import Record
from streams.queries.read_only_stores import (
    ReadOnlyKeyValueStore,
    create_view,
    require_view_class,
)
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.task import Task
from streams.runtime.threads.commit import CommitStep
from streams.serdes import Serde
from streams.testing.cluster import InMemoryCluster
from streams.testing.driver_setup import build_driver_topology, create_topics
from streams.testing.process import DriverEnvironment
from streams.testing.simulated_host import SimulatedHost
from streams.testing.state_directory import TemporaryStateDirectory
from streams.testing.store import DriverStoreProvider
from streams.testing.supervisor import ProcessSupervisor
from streams.testing.topic import DriverAccess, DriverTopic, KeyValueSerdes, TopicReader
from streams.testing.topic_serdes import TopicSerdes

_NEVER_MS = 10**15
View = TypeVar("View")


@explain_calls
class TopologyTestDriver:
    """Runs `app` as it stands, with its settings; a context manager that closes at its end.

    `partitions` says how many partitions topics have that are not to have one: inputs and outputs
    (repartition and changelog topics follow from them). A topic that only a record names is made
    when it is first written, unless `topics` says which topics exist beside those of the topology:
    then a record for any other is refused, as by a broker with `auto.create.topics.enable=false`.

    With a `seed` the tasks take turns in an order drawn from it, and records without a key find
    partitions by it. `start_ms` is the wall clock at the beginning, in ms since 1970. With
    `commit="manual"` nothing is committed, and so nothing is to be read, before `commit()`: as
    between two commits of a running application. `stores="memory"` keeps all stores in memory, for
    tests that make hundreds of drivers.

    Raises TopologyError for a topology that can't be built, ConfigError for topics that it lacks.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64)
    >>> orders.group_by_key().count(store="counts").to_stream().to("counted")
    >>> driver = TopologyTestDriver(app, partitions={"orders": 2})
    """

    def __init__(
        self,
        app: App,
        *,
        partitions: Mapping[str, int] | None = None,
        topics: Iterable[str] | None = None,
        seed: int | None = None,
        start_ms: int = 0,
        commit: Literal["each_record", "manual"] = "each_record",
        stores: Literal["declared", "memory"] = "declared",
    ) -> None:
        if commit not in ("each_record", "manual"):
            raise ValueError(f"commit={commit!r} is neither 'each_record' nor 'manual'")
        if stores not in ("declared", "memory"):
            raise ValueError(f"stores={stores!r} is neither 'declared' nor 'memory'")
        if start_ms < 0:
            raise ValueError(f"start_ms can't be negative: {start_ms}")
        topology = build_driver_topology(app, in_memory=stores == "memory")
        self._topic_serdes = TopicSerdes(topology)
        self._accepts_new_topics = topics is None and (
            self._topic_serdes.has_dynamic_topics or any(map(callable, app.config.handlers))
        )
        """Whether records may go to topics that are not known before."""
        self._specs = {spec.name: spec for sub in topology.subtopologies for spec in sub.stores}
        self._globals = {table.store.name for table in topology.global_tables}
        self._cluster = InMemoryCluster()
        self._cluster.creates_topics = topics is None
        create_topics(
            self._cluster,
            topology,
            app.config,
            self._topic_serdes,
            dict(partitions or {}),
            tuple(topics or ()),
            accepts_new_topics=self._accepts_new_topics,
        )
        self._late_record_collector = _LateRecordCollector()
        self._environment = DriverEnvironment(
            topology=topology,
            config=app.config,
            cluster=self._cluster,
            host=SimulatedHost(start_ms),
            state_directory=TemporaryStateDirectory(),
            memory=MemoryBudget(app.config.rocksdb_memory_max_bytes),
            counters=ThreadCounters(),
            observer=self._late_record_collector,
            random=Random(seed or 0),  # nosec B311 # tests draw the same each time
            is_order_drawn=seed is not None,
        )
        self._supervisor = ProcessSupervisor(
            self._environment, commit_every_ms=0 if commit == "each_record" else _NEVER_MS
        )
        self._topic_access = DriverAccess(
            self._environment.host.now_ms,
            self._environment.random.randrange,
            self._append_and_process,
        )
        self._readers: dict[str, TopicReader] = {}
        self.is_closed = False
        self._supervisor.start_process()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            raise create_missing_attribute_error(self, name)

    def topic(
        self, name: str, *, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> DriverTopic:
        """Return a topic of any kind, to pipe records in or to read them.

        An input, output, repartition, changelog or dead-letter topic. `key` and `value` replace the
        serdes that the topology has for it. Raises ConfigError for a topic that does not exist.

        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.topic("counted").read_pairs()
        [('ann', 1)]
        """
        self._check_open()
        matches = self._topic_serdes.try_add_matching_topic(name)
        if name not in self._cluster.partition_counts:
            if not (self._accepts_new_topics or (matches and self._cluster.creates_topics)):
                raise ConfigError(f"there is no topic {name!r}; there are {self.topics}")
            self._cluster.create_topic(name, 1)
            self._supervisor.process_until_idle()  # a task that is to read it begins at once
        piped, read = (
            self._topic_serdes.find_input_serdes(name),
            self._topic_serdes.find_output_serdes(name),
        )
        sources = sorted(self._topic_serdes.sources)
        return DriverTopic(
            name,
            self._cluster,
            self._topic_access,
            self._readers.setdefault(name, TopicReader(self._cluster, name)),
            input_serdes=KeyValueSerdes(key or piped.key, value or piped.value).for_topic(name),
            output_serdes=KeyValueSerdes(key or read.key, value or read.value).for_topic(name),
            pipe_refusal=""
            if name in sources
            else f"no step reads topic {name!r}: pipe to one of {sources}",
        )

    @property
    def topics(self) -> list[str]:
        """Return the names of all topics, internal ones too."""
        return sorted(self._cluster.partition_counts)

    @property
    def stores(self) -> list[str]:
        """Return the names of all stores, those of global tables too."""
        return sorted([*self._specs, *self._globals])

    @overload
    def store(self, name: str) -> ReadOnlyKeyValueStore[Any, Any] | Any: ...
    @overload
    def store(self, name: str, view_class: type[View]) -> View: ...
    def store(self, name: str, view_class: type[Any] | None = None) -> Any:
        """Return a read-only view of a store's committed content, over all partitions.

        Its class follows from the kind of the store, and may be named, as for `RunningApp.store`.
        Raises ConfigError for a store that does not exist, or is of another kind.

        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.store("counts").get("ann")
        1
        """
        self._check_open()
        global_store = self._environment.topology.resolve_global_store(name)
        if global_store is not None:
            found = self._supervisor.require_readable_process().find_global_store(global_store)
            assert found is not None, f"{name} is declared"
            return require_view_class(name, found, view_class)
        if name not in self._specs:
            raise ConfigError(f"there is no store {name!r}; there are {self.stores}")
        view = create_view(DriverStoreProvider(self._specs[name], self._readable_tasks))
        return require_view_class(name, view, view_class)

    def dead_letters(self, topic: str) -> list[Record[Any, Any]]:
        """Return the unread dead letters of a topic, with key and value as bytes.

        The bytes are those that were read; the headers `__streams.errors.*` say what was wrong.

        >>> app = App("shop", deserialization_handler=dead_letter("bad-orders"))
        >>> app.stream("orders", key=serdes.string, value=serdes.int64).to("copy")
        >>> driver = TopologyTestDriver(app)
        >>> driver.topic("orders", value=serdes.bytes).pipe("ann", b"five")
        >>> [letter.value for letter in driver.dead_letters("bad-orders")]
        [b'five']
        """
        return self.topic(topic, key=serdes.bytes, value=serdes.bytes).read_all()

    def advance_wall_clock(self, ms: int | timedelta) -> None:
        """Advance the wall clock, call punctuations by it, and process records that wait for time.

        Each schedule is called at most once.

        >>> driver.advance_wall_clock(timedelta(minutes=1))
        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.topic("counted").read().timestamp_ms
        60000
        """
        duration = duration_to_ms(ms, "ms")
        self._check_open()
        self._environment.host.advance_wall_clock(duration)
        self._supervisor.process_until_idle()

    def commit(self) -> None:
        """Commit, process what that adds to internal topics, and repeat until all is committed.

        These are as many commits as there are steps between topics.

        >>> driver = TopologyTestDriver(app, commit="manual")
        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.topic("counted").is_empty
        True
        >>> driver.commit()
        >>> driver.topic("counted").read_pairs()
        [('ann', 1)]
        """
        self._check_open()
        self._supervisor.commit_until_clean()

    def crash(self, at: CommitStep | str | None = None, *, times: int = 1) -> None:
        """Kill the process (kill -9) now, or at a step of a later commit.

        With `at` it is killed when a commit is at this step for the next time, or for the
        `times`-th time: each task that has something to commit goes through all steps.

        What the process held in memory is gone, its open transaction stays open, its files are as
        they are. Until `restart` records may be piped in, and nothing is processed. RESTORING is no
        step of a commit: it is in a restart, before stores are restored. Raises ValueError for an
        unknown step.

        >>> driver.crash(at="COMMITTED")
        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.is_running
        False
        """
        self._check_open()
        if at is None:
            self._supervisor.kill_process()
        else:
            self._supervisor.kill_at_step(at, times)

    def restart(self) -> None:
        """Start the application again after a crash or an error, or stop and start a running one.

        One that runs commits first, as in a rolling restart. Open transactions are aborted, stores
        are restored from their changelogs, and what was not committed is processed again.

        Raises StreamsError if a crash was to come at a step that no commit has reached.

        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.crash()
        >>> driver.restart()
        >>> driver.store("counts").get("ann")
        1
        """
        self._check_open()
        self._supervisor.restart_process()

    @property
    def is_running(self) -> bool:
        """Return whether the application has neither crashed nor ended with an error."""
        return self._supervisor.process is not None

    @property
    def stream_time_ms(self) -> int:
        """Return the largest timestamp that any task has seen; -1 before the first record."""
        return max(
            (task.steps.context.stream_time_ms for task in self._readable_tasks()), default=-1
        )

    @property
    def dropped(self) -> int:
        """Return how many records were dropped.

        They were too late, without the key or the value that a step needs, skipped by a handler or
        made a dead letter of. What a rollback repeats counts again.
        """
        return self._environment.counters.dropped

    @property
    def late(self) -> list[LateRecord]:
        """Return the dropped records that came after their window had closed.

        Each is there once for each window that it missed: as a step's `on_late` is called.
        """
        return list(self._late_record_collector.late_records)

    def metrics(self) -> dict[str, int]:
        """Return the counters of `RunningApp.metrics`, summed over all processes of this driver.

        >>> driver.topic("orders").pipe("ann", 5)
        >>> driver.metrics()["tasks"]
        2
        """
        process = self._supervisor.process
        tasks = 0 if process is None else len(process.tasks)
        return {"tasks": tasks, **asdict(self._environment.counters)}

    def close(self) -> None:
        """End the application and remove its state; a second call does nothing."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            self._supervisor.end_process()
        finally:
            self._environment.state_directory.remove_directory()

    def __repr__(self) -> str:
        return f"<TopologyTestDriver of {self._environment.topology.application_id!r}>"

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _append_and_process(self, append_functions: list[Callable[[], None]]) -> None:
        """Append records and process what follows, after each record or, with a seed, after all.

        An application that has crashed reads them after its restart.
        """
        self._check_open()
        if self._supervisor.stop_reason:
            self._supervisor.require_process()
        for write in append_functions:
            write()
            if not self._environment.is_order_drawn:
                self._supervisor.process_until_idle()
        if self._environment.is_order_drawn:
            self._supervisor.process_until_idle()

    def _readable_tasks(self) -> Iterable[Task]:
        """Return the tasks whose stores can be queried. Raises StoreUnavailable."""
        self._check_open()
        return self._supervisor.require_readable_process().tasks

    def _check_open(self) -> None:
        """Raise RuntimeError if the driver is closed."""
        if self.is_closed:
            raise RuntimeError("the driver is closed")


class _LateRecordCollector:
    """Collects the late records that the tasks' steps have dropped."""

    def __init__(self) -> None:
        self.late_records: list[LateRecord] = []

    def observe_late_record(self, record: LateRecord) -> None:
        self.late_records.append(record)
