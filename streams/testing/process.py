"""Simulate one process of an application: the product's stream loop, from start to end or kill -9.

The loop is turned by hand until there is nothing left to do. What it is made of is the product's
own, as `streams.runtime.threads.assembly` puts it together for the real machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from state.cache import ObjectCache
from state.replica import TopicReplica
from state.rocksdb import MemoryBudget
from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.graph.internal_context import TaskObserver
from streams.ledger import ledger_topic
from streams.membership.producer_identity import ProducerIdentity
from streams.processor.global_store import ReadOnlyGlobalStore
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.counters import ThreadCounters
from streams.runtime.global_tables.copied_records import RecordCopier
from streams.runtime.global_tables.global_replicas import open_replicas
from streams.runtime.global_tables.tables import GlobalTables
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.offsets.repeated_writes import RepeatedWriteCheck
from streams.runtime.offsets.resetter_creation import create_offset_resetter
from streams.runtime.restoring.changelog_follower import ChangelogFollower
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.chosen_topics import ChosenTopics
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.partition_group import NEVER_WAIT
from streams.runtime.tasks.partition_group import RecordOrderSettings as TaskOrder
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.ledger_writer import LedgerWriter
from streams.runtime.threads.loop import StreamLoop
from streams.runtime.threads.producer_creation import RequireWanted
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_state import ThreadState, create_thread_state_machine
from streams.settings.config import StreamsConfig
from streams.testing.clients import (
    InMemoryAdmin,
    InMemoryConsumer,
    InMemoryOrderedConsumer,
    InMemoryProducer,
)
from streams.testing.cluster import InMemoryCluster
from streams.testing.head_stamping import HeadStamper
from streams.testing.member import OnlyMember
from streams.testing.record_order import RandomOrder, TimestampOrder
from streams.testing.simulated_host import SimulatedHost
from streams.testing.state_directory import TemporaryStateDirectory
from streams.topology.build import Topology

_TURNS_MAX = 1_000_000
_ONE_RECORD = 1


class ProcessKilled(BaseException):
    """Signals kill -9: raised out of whatever the loop is in; nothing of the product catches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnvironment:
    """Holds cluster, disk and clock, which outlive the simulated process of an application."""

    topology: Topology
    config: StreamsConfig
    cluster: InMemoryCluster
    host: SimulatedHost
    state_directory: TemporaryStateDirectory
    memory: MemoryBudget
    counters: ThreadCounters
    observer: TaskObserver
    random: Random
    """The source of what a seed decides."""
    is_order_drawn: bool
    """Whether the seed decides which task goes on."""


class SimulatedProcess:
    """Simulates a process with one stream thread.

    `commit_every_ms`: 0 after each record. `on_step` is called at each step of a commit, and may
    raise ProcessKilled there.
    """

    def __init__(
        self,
        environment: DriverEnvironment,
        *,
        commit_every_ms: int,
        on_step: Callable[[CommitStep], None],
    ) -> None:
        self._environment = environment
        self._commits_each_record = commit_every_ms == 0
        self._thread_state = create_thread_state_machine("driver")
        admin = InMemoryAdmin(environment.cluster)
        resetting = create_offset_resetter(
            environment.topology, environment.config, admin, environment.host, needs_offsets=False
        )
        assignor = StreamsPartitionAssignor(environment.topology, environment.config, admin)
        self._member = OnlyMember(
            environment.cluster,
            f"{environment.topology.application_id}-driver",
            assignor.assign_group,
            assignor.declared,
            environment.topology.patterns,
        )
        self._replicas, self._globals = self._open_global_tables(admin)
        self._task_creator = self._create_task_creator(admin, resetting, on_step)
        stamper = HeadStamper(self._find_task)
        self.consumer = InMemoryOrderedConsumer(
            environment.cluster, self._create_record_order(), stamper.stamp_heads
        )
        self.loop = StreamLoop(
            self._create_thread_dependencies(admin, resetting, commit_every_ms, on_step)
        )

    def _find_task(self, partition: Partition) -> Task | None:
        """Return the task that reads a partition, if it is there."""
        return self.loop.tasks.get(self._task_creator.task_name_of_partition(*partition))

    def _create_record_order(self) -> TimestampOrder | RandomOrder:
        """Return the order in which records are taken: by time, or drawn if there is a seed."""
        world = self._environment
        if not world.is_order_drawn:
            return TimestampOrder()
        waits = world.config.max_task_idle_ms != NEVER_WAIT
        return RandomOrder(
            world.random,
            lambda p: self._task_creator.task_name_of_partition(*p),
            waits_for_earlier=waits,
        )

    def _open_global_tables(
        self, admin: InMemoryAdmin
    ) -> tuple[Mapping[str, TopicReplica], GlobalTables]:
        """Open the replicas of the global tables, and what keeps them up to date."""
        world, config = self._environment, self._environment.config
        tables = world.topology.global_tables
        paths = partial(world.state_directory.build_global_store_path, 0)
        replicas = open_replicas(tables, paths, world.memory)
        copier = RecordCopier(
            config.handlers,
            create_producer=partial(self._create_plain_producer, "global"),
            list_topics=_AnyTopic,
            host=world.host,
            counters=world.counters,
            read_topics=world.topology.read_topics,
        )
        return replicas, GlobalTables(
            tables,
            replicas,
            create_consumer=lambda: InMemoryConsumer(world.cluster),
            copier=copier,
            admin=admin,
            host=world.host,
            timeout_ms=config.task_timeout_ms,
        )

    def _create_task_creator(
        self,
        admin: InMemoryAdmin,
        resetting: OffsetResetter,
        on_step: Callable[[CommitStep], None],
    ) -> TaskCreator:
        """Create the TaskCreator of this process."""
        world, config = self._environment, self._environment.config
        return TaskCreator(
            world.topology,
            world.state_directory,
            resetting,
            world.host,
            committed_offsets=self._member.fetch_committed_offsets,
            repeated_writes=RepeatedWriteCheck(
                world.topology,
                admin,
                CommittedRecordSearch(admin, partial(InMemoryConsumer, world.cluster), world.host),
                self._member.fetch_committed_offsets,
            ),
            is_transactional=config.exactly_once,
            memory=world.memory,
            cache=ObjectCache(config.cache_max_bytes),
            on_part_written=lambda: on_step(CommitStep.STORING),
            global_replicas=self._globals.replicas,
            observer=world.observer,
            failures=FailureHandler(
                config.handlers,
                counters=world.counters,
                monotonic_s=world.host.monotonic_s,
                list_topics=(
                    _AnyTopic
                    if world.cluster.creates_topics
                    else world.cluster.partition_counts.keys
                ),
                chosen_topics=ChosenTopics(0, world.host, _skip_wait),
                read_topics=world.topology.read_topics,
            ),
        )

    def _create_thread_dependencies(
        self,
        admin: InMemoryAdmin,
        resetting: OffsetResetter,
        commit_every_ms: int,
        on_step: Callable[[CommitStep], None],
    ) -> ThreadDependencies:
        """Return all that the stream loop depends on."""
        world, config, machine = self._environment, self._environment.config, self._environment.host
        application = world.topology.application_id
        changelog_reader = StoreChangelogReader[Task](
            "driver's restore",
            InMemoryConsumer(world.cluster),
            admin,
            machine,
            is_transactional=config.exactly_once,
            timeout_ms=config.task_timeout_ms,
            before_batch=lambda: on_step(CommitStep.RESTORING),
        )
        follower = ChangelogFollower[Task](
            "driver's standbys",
            lambda: InMemoryConsumer(world.cluster),
            admin,
            machine,
            fetch_committed_offsets=self._member.fetch_committed_offsets,
            is_transactional=config.exactly_once,
        )
        return ThreadDependencies(
            name="driver",
            group=application,
            member=self._member,
            consumer=self.consumer,
            restorer=Restorer(changelog_reader, follower, machine),
            offset_resetter=resetting,
            admin=admin,
            task_creator=self._task_creator,
            producers=TaskProducers(
                self._create_producer,
                guarantee=config.processing_guarantee,
                application_id=application,
                thread_id=self._member.instance_id,
                is_member=self._member.is_membership_confirmed,
                host=machine,
                creation_timeout_ms=config.task_timeout_ms,
            ),
            stop=machine.create_event(),
            host=machine,
            commit_interval_ms=commit_every_ms,
            poll_records_max=_ONE_RECORD,
            order_settings=TaskOrder(
                config.max_task_idle_ms,
                config.buffered_records_per_partition,
                keeps_order=config.ledger,
            ),
            uncommitted_bytes_max=config.statestore_uncommitted_max_bytes,
            task_timeout_ms=config.task_timeout_ms,
            on_state_change=self._thread_state.change_state,
            on_commit_step=on_step,
            ledger=LedgerWriter(ledger_topic(application), _refuse_identity_lookup)
            if config.ledger
            else None,
            counters=world.counters,
        )

    def _create_producer(self, name: str, require_wanted: RequireWanted = None) -> InMemoryProducer:
        """Create a producer on the cluster in memory, which waits for nobody."""
        config = self._environment.config
        return self._create_plain_producer(
            name, transactional=config.exactly_once, reports_deliveries=config.ledger
        )

    def _create_plain_producer(
        self, name: str, *, transactional: bool = False, reports_deliveries: bool = False
    ) -> InMemoryProducer:
        """Create a producer on the cluster in memory, with transactions or without."""
        world = self._environment
        return InMemoryProducer(
            name,
            world.cluster,
            transactional=transactional,
            reports_deliveries=reports_deliveries,
            now_ms=world.host.now_ms,
            random=world.random,
        )

    @property
    def tasks(self) -> Collection[Task]:
        """Return the tasks of the loop."""
        return self.loop.tasks.values()

    def find_global_store(self, name: str) -> ReadOnlyGlobalStore[Any, Any] | None:
        """Return the replica of a global table by its store's name; None if there is none."""
        return self._globals.find_read_only_store(name)

    def start_processing(self) -> None:
        """Replicate the global tables as they are, then process all that can be processed.

        So records meet global tables with all that was there before. Raises the error that ends the
        application.
        """
        if self._replicas:
            self._globals.copy_existing_records(self._environment.host.create_event())
        self.process_until_idle()

    def process_until_idle(self) -> None:
        """Process all that can be processed, what is written to internal topics included.

        Raises the error that ends the loop.
        """
        for _ in range(_TURNS_MAX):
            if (
                self._commits_each_record
            ):  # records that wait in a task are taken one at a time, too
                for task in self.tasks:
                    task.slice_size = _ONE_RECORD
            self._replicate_global_tables()
            self.loop.run_once()
            is_running = self._thread_state.state is ThreadState.RUNNING
            if is_running and not self.consumer.find_next_records():
                self._replicate_global_tables()  # the last turn may have written to their topics
                return
        raise StreamsError(
            f"after {_TURNS_MAX} turns there is still something to process: does a step write to a "
            "topic that leads back to it?"
        )

    def _replicate_global_tables(self) -> None:
        """Bring the global tables up to date."""
        if self._replicas:
            self._globals.copy_new_records()

    def commit_until_clean(self) -> None:
        """Commit, process what that adds to internal topics, and repeat until all is committed.

        Raises the error that ends the loop.
        """
        while any(task.commit_needed for task in self.tasks):
            self.loop.commit_now()
            self.process_until_idle()

    def end_process(self) -> None:
        """Close processors and stores in order; what is not committed is forgotten."""
        with ExitStack() as steps:  # in reverse order
            for replica in self._replicas.values():
                steps.callback(replica.close)
            steps.callback(self._globals.stop_copying)
            steps.callback(self.loop.close)

    def kill_process(self) -> None:
        """Leave everything as kill -9 would, and copy the files for the next process.

        The databases are closed only after the copy, since the next process opens them in this one.
        """
        before = self._environment.state_directory.switch_to_copy()
        with ExitStack() as steps:
            if before is not None:
                steps.callback(shutil.rmtree, before, ignore_errors=True)
            for replica in self._replicas.values():
                steps.callback(replica.close)
            for task in self.tasks:
                for store in task.stores.all_stores().values():
                    steps.callback(store.close)


class _AnyTopic(Collection[str]):
    """Presents a collection that contains every topic name, so that any topic can be written."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _skip_wait(seconds: float) -> None:
    """Return without waiting, since nothing in a cluster in memory changes meanwhile."""


def _refuse_identity_lookup(transactional_id: str) -> ProducerIdentity:
    """Raise AssertionError: a producer in memory knows its identity and never asks for it."""
    raise AssertionError("a producer in memory knows its identity")
