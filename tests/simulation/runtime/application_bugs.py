"""Bugs that only applications with a model of their own show, planted as those of `bugs` are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from state.replica import Copied, Replica
from state.store import ChangelogEntry, Checkpoint
from state.versioned import VersionedStore
from streams.dsl import foreign_key as foreign_key_steps
from streams.handling import ErrorContext
from streams.ledger import Run
from streams.membership.classic import ClassicMember
from streams.membership.offsets import LOST
from streams.operators import foreign_key
from streams.positions import Committed, Partition
from streams.runtime import assembly
from streams.runtime.clients import DataConsumer
from streams.runtime.clients.written import Written
from streams.runtime.failures import Failures
from streams.runtime.ledger import Ledger
from streams.runtime.queues import NEVER_WAIT
from streams.runtime.task import Task
from streams.topology.nodes import Binding, Operator
from tests.simulation.bugs import replaced
from tests.simulation.runtime import checkers
from tests.simulation.runtime.bugs import Planted
from tests.simulation.runtime.checkers import Offsets, Results
from tests.simulation.runtime.clients.producer import SimProducer
from tests.simulation.runtime.world import RuntimeWorld
from tests.simulation.world import Setting, World


def rows_joined_that_wait_for_the_commit(world: World) -> AbstractContextManager[None]:
    """A foreign-key join looks its tables up through their caches: at what nobody was told yet."""

    def make(original: Any) -> Any:
        return lambda at, **_: at

    return replaced(foreign_key, "replace", make)


def overtaken_answers_asked_no_more(world: World) -> AbstractContextManager[None]:
    """An inner foreign-key join drops an answer that was overtaken, and leaves it at that."""

    def make(original: Any) -> Any:
        def resolve(*arguments: Any, asking: str | None, **rest: Any) -> Operator:
            operator = original(*arguments, asking=asking, **rest)

            def bind(at: Binding) -> Any:
                children = {**at.children, asking: _unheard} if asking else at.children
                return operator(replace(at, children=children))

            return bind

        return resolve

    return replaced(foreign_key_steps, "resolve", make)


def _unheard(*asked: Any) -> None:
    pass


def empty_partitions_not_waited_for(world: World) -> AbstractContextManager[None]:
    """A task that reads several partitions goes on with what it has."""

    def make(original: Any) -> Any:
        return lambda idle_ms, buffered: original(NEVER_WAIT, buffered)

    return replaced(assembly, "Order", make)


def offsets_sent_of_what_advanced_alone(world: World) -> AbstractContextManager[None]:
    """A partition that nothing was read from keeps the metadata of an earlier commit."""

    def make(original: Any) -> Any:
        def offsets(self: Task) -> list[tuple[Partition, Committed]]:
            sent: dict[Partition, int] = self.__dict__.setdefault("sent", {})
            every: list[tuple[Partition, Committed]] = original(self)
            found = [(p, held) for p, held in every if sent.get(p) != held.offset]
            sent |= {p: held.offset for p, held in found}
            return found or every

        return offsets

    return replaced(Task, "offsets", make)


def changelogs_left_out_of_the_ledger(world: World) -> AbstractContextManager[None]:
    """An entry says what was written to other topics alone."""

    def make(original: Any) -> Any:
        def take(self: Written) -> dict[Partition, tuple[Run, ...]]:
            found: dict[Partition, tuple[Run, ...]] = original(self)
            return {p: runs for p, runs in found.items() if not p.topic.endswith("-changelog")}

        return take

    return replaced(Written, "take", make)


def ledger_written_with_the_offsets_before(world: World) -> AbstractContextManager[None]:
    """An entry names the offsets that its tasks had committed last."""

    def make(original: Any) -> Any:
        def write(self: Ledger, producer: Any, tasks: Collection[Task]) -> None:
            now = {task: dict(task.positions) for task in tasks}
            for task in tasks:
                known: dict[Partition, int] = task.__dict__.setdefault("known", {})
                task.positions = {p: known.get(p, 0) for p in task.positions}
            try:
                original(self, producer, tasks)
            finally:
                for task, positions in now.items():
                    task.positions = task.__dict__["known"] = positions

        return write

    return replaced(Ledger, "write", make)


def restored_versions_are_the_latest_alone(world: World) -> AbstractContextManager[None]:
    """Of the versions of a key that come in one batch the last wins, as in other stores."""

    def make(original: Any) -> Any:
        def replay(
            self: Any,
            entries: Iterable[ChangelogEntry],
            checkpoint: Checkpoint,
        ) -> None:
            latest = {entry[0]: entry for entry in entries}
            original(self, latest.values(), checkpoint)

        return replay

    return replaced(VersionedStore, "replay", make)


def dead_letters_outside_of_transactions(world: World) -> AbstractContextManager[None]:
    """A producer of their own brings them to their topic, whatever becomes of the transaction."""

    def make(original: Any) -> Any:
        def write(self: Any, topic: str, task: Any, where: ErrorContext) -> None:
            assert isinstance(world, RuntimeWorld)
            process = world.running().process
            producer = process.__dict__.setdefault("dead", None)
            if producer is None:
                producer = SimProducer(process, {"client.id": "dead"})
                process.__dict__["dead"] = producer
            producer.produce(topic, where.source_value, where.source_key)

        return write

    return replaced(Failures, "_write", make)


def coordinator_away_taken_for_a_yes(world: World) -> AbstractContextManager[None]:
    """Whoever is not told that he is no member any more counts himself as one."""

    def make(original: Any) -> Any:
        def is_current(self: Any) -> bool:
            with self._reconnecting():
                return self._heartbeat(self._current) not in LOST

        return is_current

    return replaced(ClassicMember, "is_current", make)


def ends_of_partitions_forgotten(world: World) -> AbstractContextManager[None]:
    """A partition of which nothing was fetched yet is taken for one of which all was."""

    def make(original: Any) -> Any:
        def lag(self: Any, partition: Partition) -> int | None:
            found: int | None = original(self, partition)
            if partition in self._ends:
                self._ends[partition] = -1
            return found

        return lag

    return replaced(DataConsumer, "lag", make)


def deletions_not_copied(world: World) -> AbstractContextManager[None]:
    """A copy of a global table keeps rows that its topic has deleted."""

    def make(original: Any) -> Any:
        def apply(self: Replica, records: Iterable[Copied], checkpoint: Checkpoint) -> None:
            original(self, [each for each in records if each[3] is not None], checkpoint)

        return apply

    return replaced(Replica, "apply", make)


FOREIGN = {"kind": "foreign", "guarantee": "exactly_once_v2", "late_partitions": 0.7}
MERGED = {"kind": "merged", "guarantee": "exactly_once_v2"}
LEDGER = {"kind": "regroup", "ledger": True}
VERSIONED = {"kind": "versioned", "guarantee": "exactly_once_v2"}
LOOKED_UP = {
    "kind": "looked up",
    "late_partitions": 0.9,
    "persistent": False,
    "guarantee": "exactly_once_v2",
}
HANDLED = {"kind": "handled", "guarantee": "exactly_once_v2"}
STOPPED: Mapping[str, Any] = {
    "kind": "collect",
    "world": Setting(),
    "guarantee": "at_least_once",
    "stops_before_asking": True,
    "workers": 2,
    "threads": 1,
    "together": False,
    "session_timeout_ms": 1_000,
    "max_poll_interval_ms": 1_000,
    "commit_interval_ms": 100,
    "slow_markers": 0.0,
    "unsteady": 0.0,
}
APPLICATION_BUGS = (
    Planted(
        coordinator_away_taken_for_a_yes, (checkers.Grown,), "stopped beyond sessions", STOPPED
    ),
    Planted(
        rows_joined_that_wait_for_the_commit,
        (Results,),
        "kills",
        FOREIGN | {"caching": True, "commit_interval_ms": 400},
    ),
    Planted(overtaken_answers_asked_no_more, (Results,), "damage", FOREIGN | {"caching": False}),
    Planted(empty_partitions_not_waited_for, (Results,), "kills", MERGED),
    Planted(offsets_sent_of_what_advanced_alone, (Offsets,), "kills", MERGED),
    Planted(restored_versions_are_the_latest_alone, (Results,), "damage", VERSIONED),
    Planted(dead_letters_outside_of_transactions, (Results,), "kills", HANDLED),
    Planted(ends_of_partitions_forgotten, (Results,), "broker", LOOKED_UP),
    Planted(deletions_not_copied, (checkers.Globals,), "kills", LOOKED_UP | {"persistent": True}),
    Planted(changelogs_left_out_of_the_ledger, (checkers.Ledger,), "kills", LEDGER),
    Planted(ledger_written_with_the_offsets_before, (checkers.Ledger,), "kills", LEDGER),
)
