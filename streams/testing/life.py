"""Simulate one process of an application: the product's stream loop, from start to end or kill -9.

The loop is turned by hand until there is nothing left to do. What it is made of is the product's
own, as `streams.runtime.assembly` puts it together for the real machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random

from state.cache import ObjectCache
from state.replica import Replica
from state.rocksdb import MemoryBudget
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.ledger import ledger_topic
from streams.membership.transactions import Identity
from streams.runtime.assignment import Planner
from streams.runtime.commit import Step
from streams.runtime.counters import Counters
from streams.runtime.failures import Failures
from streams.runtime.globals import GlobalTables, ReadOnly, open_replicas
from streams.runtime.ledger import Ledger
from streams.runtime.loop import StreamLoop
from streams.runtime.opening import Opener
from streams.runtime.parts import Parts
from streams.runtime.producers import Producers
from streams.runtime.queues import NEVER_WAIT
from streams.runtime.queues import Order as TaskOrder
from streams.runtime.resetting import Resetting
from streams.runtime.restorer import Restorer
from streams.runtime.task import Task
from streams.testing.clients import MemoryAdmin, MemoryConsumer, MemoryProducer, OrderedConsumer
from streams.testing.cluster import Cluster
from streams.testing.machine import Machine
from streams.testing.member import OnlyMember
from streams.testing.order import ByTime, Drawn
from streams.testing.scratch import Scratch
from streams.topology.build import Topology
from streams.topology.nodes import Watch

_TURNS_MAX = 1_000_000
_ONE = 1


class Killed(BaseException):
    """Signals kill -9: raised out of whatever the loop is in; nothing of the product catches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Holds what outlives the application's process: the cluster, the disk, the clock."""

    topology: Topology
    config: StreamsConfig
    cluster: Cluster
    machine: Machine
    scratch: Scratch
    memory: MemoryBudget
    counters: Counters
    watch: Watch
    random: Random
    """The source of what a seed decides."""
    drawn: bool
    """Whether the seed decides which task goes on."""


class Life:
    """Simulates a process with one stream thread.

    `commit_every_ms`: 0 after each record. `on_step` is called at each step of a commit, and may
    raise ProcessKilled there.
    """

    def __init__(
        self, world: World, *, commit_every_ms: int, reached: Callable[[Step], None]
    ) -> None:
        self._world = world
        self._one_by_one = commit_every_ms == 0
        self._state = ""
        admin = MemoryAdmin(world.cluster)
        resetting = Resetting(
            admin,
            world.machine,
            auto_offset_reset=world.config.auto_offset_reset,
            offset_out_of_range=world.config.offset_out_of_range,
            internal=world.topology.repartition_topics,
        )
        self._member = OnlyMember(
            world.cluster,
            f"{world.topology.application_id}-driver",
            Planner(world.topology, world.config, admin).plan,
        )
        self._replicas, self._globals = self._global_tables(admin)
        self._opener = self._make_opener(resetting, reached)
        self.consumer = OrderedConsumer(world.cluster, self._order())
        self.loop = StreamLoop(self._parts(admin, resetting, commit_every_ms, reached))

    def _order(self) -> ByTime | Drawn:
        """Return the order in which records are taken: by time, or drawn if there is a seed."""
        world = self._world
        if not world.drawn:
            return ByTime()
        waits = world.config.max_task_idle_ms != NEVER_WAIT
        return Drawn(world.random, lambda p: self._opener.task_of(*p), waits=waits)

    def _global_tables(self, admin: MemoryAdmin) -> tuple[Mapping[str, Replica], GlobalTables]:
        """Open the replicas of the global tables, and what keeps them up to date."""
        world, config = self._world, self._world.config
        tables = world.topology.global_tables
        paths = partial(world.scratch.global_path, 0)
        replicas = open_replicas(tables, paths, world.memory)
        return replicas, GlobalTables(
            tables,
            replicas,
            consumer=lambda: MemoryConsumer(world.cluster),
            admin=admin,
            host=world.machine,
            handler=config.handlers.deserialization,
            timeout_ms=config.task_timeout_ms,
        )

    def _make_opener(self, resetting: Resetting, reached: Callable[[Step], None]) -> Opener:
        """Create the TaskCreator of this process."""
        world, config = self._world, self._world.config
        return Opener(
            world.topology,
            world.scratch,
            resetting,
            world.machine,
            committed_offsets=self._member.committed_offsets,
            memory=world.memory,
            cache=ObjectCache(config.cache_max_bytes),
            storing=lambda: reached(Step.STORING),
            global_views=self._globals.views(),
            watch=world.watch,
            failures=Failures(
                config.handlers,
                counters=world.counters,
                monotonic_s=world.machine.monotonic_s,
                topics=_AnyTopic,
            ),
        )

    def _parts(
        self,
        admin: MemoryAdmin,
        resetting: Resetting,
        commit_every_ms: int,
        reached: Callable[[Step], None],
    ) -> Parts:
        """Return all that the stream loop depends on."""
        world, config, machine = self._world, self._world.config, self._world.machine
        application = world.topology.application_id
        return Parts(
            name="driver",
            group=application,
            member=self._member,
            consumer=self.consumer,
            restorer=Restorer(
                "driver's restore",
                MemoryConsumer(world.cluster),
                admin,
                machine,
                transactions=config.exactly_once,
                timeout_ms=config.task_timeout_ms,
                reached=lambda: reached(Step.RESTORING),
            ),
            resetting=resetting,
            admin=admin,
            opener=self._opener,
            producers=Producers(
                self._producer,
                guarantee=config.processing_guarantee,
                application=application,
                thread=self._member.instance_id,
                is_member=self._member.is_current,
            ),
            stop=machine.event(),
            host=machine,
            commit_every_ms=commit_every_ms,
            records_max=_ONE,
            order=TaskOrder(config.max_task_idle_ms, config.buffered_records_per_partition),
            uncommitted_bytes_max=config.statestore_uncommitted_max_bytes,
            task_timeout_ms=config.task_timeout_ms,
            changed=self._changed,
            reached=reached,
            ledger=Ledger(ledger_topic(application), _identified) if config.ledger else None,
            counters=world.counters,
        )

    def _producer(self, name: str) -> MemoryProducer:
        """Create a producer on the cluster in memory."""
        world = self._world
        return MemoryProducer(
            name,
            world.cluster,
            transactional=world.config.exactly_once,
            accounts=world.config.ledger,
            now_ms=world.machine.now_ms,
            random=world.random,
        )

    @property
    def tasks(self) -> Collection[Task]:
        """Return the tasks of the loop."""
        return self.loop.tasks.values()

    def global_store(self, name: str) -> ReadOnly | None:
        """Return the replica of a global table by its store's name; None if there is none."""
        return self._globals.read(name)

    def begin(self) -> None:
        """Replicate the global tables as they are, then process all that can be processed.

        So records meet global tables with all that was there before. Raises the error that ends the
        application.
        """
        if self._replicas:
            self._globals.begin(self._world.machine.event())
        self.settle()

    def settle(self) -> None:
        """Process all that can be processed, what is written to internal topics included.

        Raises the error that ends the loop.
        """
        for _ in range(_TURNS_MAX):
            if self._one_by_one:  # records that wait in a task are taken one at a time, too
                for task in self.tasks:
                    task.slice_records = _ONE
            self._copy_globals()
            self.loop.turn()
            if self._state == "RUNNING" and not self.consumer.heads():
                self._copy_globals()  # the last turn may have written to their topics
                return
        raise StreamsError(
            f"after {_TURNS_MAX} turns there is still something to process: does a step write to a "
            "topic that leads back to it?"
        )

    def _copy_globals(self) -> None:
        """Bring the global tables up to date."""
        if self._replicas:
            self._globals.step()

    def _changed(self, state: str) -> None:
        """Note the state that the loop reports."""
        self._state = state

    def commit(self) -> None:
        """Commit, and process what that brings, until nothing is left uncommitted.

        Raises the error that ends the loop.
        """
        while any(task.dirty for task in self.tasks):
            self.loop.commit()
            self.settle()

    def end(self) -> None:
        """Close processors and stores in order; what is not committed is forgotten."""
        with ExitStack() as steps:  # in reverse order
            for replica in self._replicas.values():
                steps.callback(replica.close)
            steps.callback(self._globals.end)
            steps.callback(self.loop.close)

    def kill(self) -> None:
        """Leave everything as kill -9 would, and keep a copy of the files for the next process.

        The databases are closed only after the copy, since the next process opens them in this one.
        """
        before = self._world.scratch.killed()
        with ExitStack() as steps:
            if before is not None:
                steps.callback(shutil.rmtree, before, ignore_errors=True)
            for replica in self._replicas.values():
                steps.callback(replica.close)
            for task in self.tasks:
                for store in task.every_store().values():
                    steps.callback(store.close)


class _AnyTopic(Collection[str]):
    """Contains every name of a topic: each can be written."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _identified(transactional_id: str) -> Identity:
    """Raise AssertionError: a producer in memory knows its identity and never asks for it."""
    raise AssertionError("a producer in memory knows its identity")
