"""Simulate machines with workers, a writer of the input, and the broker with its coordinators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.log.partition import PartitionLog
from state.errors import StoreCorrupted
from streams.ledger import ledger_topic
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from tests.simulation.runtime.applications import APPLICATIONS, Input
from tests.simulation.runtime.clients.producer import SimProducer
from tests.simulation.runtime.machine import Database, Machine
from tests.simulation.runtime.process import Process
from tests.simulation.runtime.threaded import ThreadedWorld
from tests.simulation.runtime.topologies import (
    APPLICATION,
    COPIES,
    GRACE_MS,
    INPUT,
    KEPT_MS,
    OTHER,
    OUTPUT,
    TIMED,
    topology,
)
from tests.simulation.runtime.worker import SimWorker
from tests.simulation.truth import Truth
from tests.simulation.world import Setting

if TYPE_CHECKING:
    from tests.simulation.runtime.checkers.checker import RuntimeChecker

LATE_MS = 1_000
"""More than an application's record is ever behind the one before it."""
PARTITIONS = 2
KEYS = 4
CLOSER = "close"
"""The prefix of keys of records that only move time on."""
BROKER = {
    "auto_create_topics_enable": False,
    "group_min_session_timeout_ms": 500,
    "group_initial_rebalance_delay_ms": 50,
}


class Timed(NamedTuple):
    """Represents a record with a timestamp."""

    topic: str
    key: str
    value: str
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSetting:
    """Holds what is the same for all of a history of the runtime."""

    world: Setting
    kind: str = "collect"
    caching: bool = True
    persistent: bool = True
    workers: int = 2
    threads: int = 1
    together: bool = False  # all workers on one machine
    guarantee: str = "exactly_once_v2"
    ledger: bool = False
    stops_before_asking: bool = False  # of a commit at least once: for `checkers.grown`
    switches: bool = False  # every second life of a worker is exactly once in the other way
    commit_interval_ms: int = 100
    session_timeout_ms: int = 1_500
    max_poll_interval_ms: int = 4_000
    slow_markers: float = 0.0  # the probability that a partition's marker comes later
    late_partitions: float = 0.0  # the probability that a fetch leaves a partition out
    unsteady: float = 0.0  # the probability that tasks move at a rebalance for no reason
    standbys: float = 0.0  # the probability that a task gets a standby, or a warm-up, on a machine
    preemption: float = 0.02  # the probability that another thread gets its turn at a call
    kept_ms: int = KEPT_MS  # how long stores keep their windows
    broker: Mapping[str, Any] = field(default_factory=dict)  # more fields of its configuration
    auto_offset_reset: str = "earliest"
    metadata_max_age_ms: int = 300_000
    task_timeout_ms: int = 300_000

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee != "at_least_once"


class RuntimeWorld(ThreadedWorld):
    """Represents the world of the runtime."""

    def __init__(self, setting: RuntimeSetting, seed: int) -> None:
        topics = {INPUT: PARTITIONS, OUTPUT: PARTITIONS}
        if setting.kind in ("outer", "lines"):
            topics[OTHER] = PARTITIONS
        make = APPLICATIONS.get(setting.kind)
        self.application = None if make is None else make()
        if self.application is not None:
            topics = dict(self.application.topics)
        if setting.kind == "lines":
            topics[COPIES] = PARTITIONS
        if setting.ledger:
            topics[ledger_topic(APPLICATION)] = 1
        broker = {**BROKER, **setting.broker}
        super().__init__(setting.world, seed, topics, broker, preemption=setting.preemption)
        self.runtime = setting
        self.seed = seed
        self.trouble = setting.world.trouble
        self.slow_markers = setting.slow_markers
        self.late_partitions = setting.late_partitions
        self.listeners: list[RuntimeChecker] = []
        self.given: dict[str, list[str]] = {f"k{number}": [] for number in range(KEYS)}
        """The values written to the input, by key, in order."""
        self.timed: list[Timed] = []
        """The records with timestamps written to both inputs."""
        self.feed_partitions = PARTITIONS
        """How many partitions of the input the records are written to."""
        self._behind_ms = 0
        """How far the times of an application's records are behind the clock."""
        self._ahead_ms = -3 * 86_400_000  # brokers take no times that are far ahead of theirs
        machines = 1 if setting.together else setting.workers
        self.machines = [Machine(self, number) for number in range(machines)]
        self.workers = [
            SimWorker(self, number, self.machines[number % machines])
            for number in range(setting.workers)
        ]
        self.config = StreamsConfig(
            bootstrap_servers="broker:9092",
            processing_guarantee=setting.guarantee,
            commit_interval_ms=setting.commit_interval_ms,
            ledger=setting.ledger,
            metadata_max_age_ms=setting.metadata_max_age_ms,
            num_stream_threads=setting.threads,
            transaction_timeout_ms=setting.world.transaction_timeout_ms,
            session_timeout_ms=setting.session_timeout_ms,
            heartbeat_interval_ms=300,
            max_poll_interval_ms=setting.max_poll_interval_ms,
            request_timeout_ms=1_500,
            task_timeout_ms=setting.task_timeout_ms,
            max_poll_records=20,
            repartition_purge_interval_ms=700,
            auto_offset_reset=setting.auto_offset_reset,
            producer={"linger.ms": 5},
            **({} if self.application is None else self.application.settings),
        )
        self.sources = frozenset(self.topology().source_topics)
        self.is_over = False
        self._feeder = Process(self, "feeder", Random(f"{seed} feeder"), 0.0)
        self._feed = SimProducer(self._feeder, {"client.id": "feed"})

    def config_of(self, life: int) -> StreamsConfig:
        """Return the configuration of a worker's life."""
        if not self.runtime.switches or life % 2:
            return self.config
        guarantee = self.runtime.guarantee
        other = "exactly_once" if guarantee == "exactly_once_v2" else "exactly_once_v2"
        return self.config.model_copy(update={"processing_guarantee": other})

    def topology(self, life: int = 1) -> Topology:
        """Return the topology that a worker's life runs."""
        setting = self.runtime
        if self.application is not None:
            return self.application.topology(caching=setting.caching, persistent=setting.persistent)
        return topology(
            setting.kind,
            caching=setting.caching,
            persistent=setting.persistent,
            swapped=life % 2 == 0,
            kept_ms=setting.kept_ms,
        )

    # Workers and their machines

    def machine_of(self, process: Process) -> Machine:
        return next(worker.machine for worker in self.workers if worker.process is process)

    @property
    def databases(self) -> list[Database]:
        return [each for machine in self.machines for each in machine.databases.values()]

    def report_write(self, database: Database) -> None:
        for listener in self.listeners:
            listener.handle_write(database)

    def report_clear(self, database: Database) -> None:
        self.log("cleared", database.path)
        for listener in self.listeners:
            listener.handle_clear(database)

    def report_deletion(self, database: Database) -> None:
        for listener in self.listeners:
            listener.handle_deletion(database)

    def corrupt(self, database: Database) -> Exception:
        """Return the exception that the product's disk raises for an unreadable database."""
        return StoreCorrupted(database.path.name, database.path, "as the simulation has it")

    # Input and output

    def feed_first(self) -> None:
        """Write the records that are there before the workers start."""
        if self.application is not None:
            for each in tuple(self.application.first(self.loop.now_ms())):
                self._feed_input(each)

    def feed(self, count: int, random: Random) -> None:
        """Write so many more records, of any keys."""
        for _ in range(count):
            if self.application is not None:
                now_ms = self.loop.now_ms() - self._behind_ms
                for each in tuple(self.application.feed(random, now_ms)):
                    self._feed_input(each)
                continue
            number = random.randrange(KEYS)
            given = self.given[f"k{number}"]
            given.append(f"k{number}|{len(given) + 1}")
            if self.runtime.kind in TIMED:
                self._feed_timed(number, given[-1], random)
                continue
            for topic in (INPUT, OTHER) if self.runtime.kind == "lines" else (INPUT,):
                self._feed.produce(
                    topic, given[-1].encode(), f"k{number}".encode(), number % self.feed_partitions
                )

    def _feed_input(self, fed: Input) -> None:
        assert self.application is not None
        self.application.inputs.append(fed)
        topic, number, key, value, time_ms = fed
        self._feed.produce(topic, value, key.encode(), number, timestamp=time_ms)

    def _feed_timed(self, number: int, value: str, random: Random) -> None:
        """Write a value to one input, or to both at about the same time."""
        now_ms = self.loop.now_ms() + self._ahead_ms
        inputs: tuple[str, ...] = (INPUT,)
        if self.runtime.kind == "outer":
            inputs = random.choice(((INPUT, OTHER), (OTHER, INPUT), (INPUT,), (OTHER,)))
        for topic in inputs:
            key = value if self.runtime.kind == "outer" else f"k{number}"
            fed = Timed(topic, key, value, now_ms)
            self.timed.append(fed)
            self._produce_timed(fed, number % self.feed_partitions)
            now_ms += random.randrange(100)

    def leap(self) -> None:
        """Make the next records so much later that all windows before them have closed."""
        self._ahead_ms += 3 * GRACE_MS

    def continue_event_time(self) -> None:
        """Let the next timed record come right after the last one, whatever the clock says."""
        if self.application is not None and self.application.inputs:
            last_ms = max(each.time_ms for each in self.application.inputs)
            self._behind_ms = self.loop.now_ms() - last_ms - LATE_MS
        if self.timed:
            self._ahead_ms = self.timed[-1].time_ms + 1 - self.loop.now_ms()

    def close(self) -> None:
        """Write records without values of interest, which close all open windows."""
        self.leap()
        for topic in (INPUT, OTHER) if self.runtime.kind == "outer" else (INPUT,):
            for number in range(PARTITIONS):
                now_ms = self.loop.now_ms() + self._ahead_ms
                self._produce_timed(Timed(topic, f"{CLOSER}{number}", "", now_ms), number)

    def _produce_timed(self, fed: Timed, partition: int) -> None:
        value, key = fed.value.encode(), fed.key.encode()
        self._feed.produce(fed.topic, value, key, partition, timestamp=fed.time_ms)

    @property
    def is_fed(self) -> bool:
        return not len(self._feed)

    def committed_offset(self, topic: str, number: int) -> tuple[int, str]:
        """Return the offset and metadata that the application's group committed; -1 if none."""
        [found] = self.broker.coordinators.groups.offsets.fetch_offsets(
            APPLICATION, [(topic, number, None)], require_stable=False
        )
        return found.offset, found.metadata

    def partitions(self) -> Iterator[tuple[tuple[str, int], PartitionLog]]:
        for topic in self.broker.topics:
            if not topic.is_internal:
                for index, partition in enumerate(topic.partitions):
                    self.truths.setdefault((topic.name, index), Truth())
                    yield (topic.name, index), partition

    def committed(self, topic: str) -> dict[int, list[tuple[int, str, Any]]]:
        """Return offset, key and value of all committed records, by partition."""
        return {
            place[1]: [
                (each.offset, (each.key or b"").decode(), each.value)
                for each in truth.committed(truth.end_offset)
            ]
            for place, truth in sorted(self.truths.items())
            if place[0] == topic
        }

    def end(self) -> None:
        """End all threads and stop everything in this world."""
        self.is_over = True
        for worker in self.workers:
            if worker.process is not None:
                worker.process.thaw()
                worker.process.kill()
        self._feeder.kill()
