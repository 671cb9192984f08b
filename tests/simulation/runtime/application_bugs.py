"""Plant bugs that only applications with a model of their own show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from state.replica import CopiedRecord, TopicReplica
from state.store import ChangelogEntry
from state.store_checkpoint import StoreCheckpoint
from state.versioned import VersionedStore
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.dsl import foreign_key_joins as foreign_key_steps
from streams.graph.nodes import Binding, Operator
from streams.ledger import WrittenRange
from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.group_offsets import MEMBERSHIP_LOST_ERRORS
from streams.membership.group_requests import send_heartbeat
from streams.operators import foreign_key
from streams.runtime.clients import DataConsumer
from streams.runtime.clients.delivered_offsets import DeliveredOffsets
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.partition_group import NEVER_WAIT
from streams.runtime.tasks.task import Task
from streams.runtime.threads import assembly
from streams.runtime.threads.ledger_writer import LedgerWriter
from streams.settings.exception_handlers import ErrorContext
from tests.simulation.bugs import replaced
from tests.simulation.runtime import checkers
from tests.simulation.runtime.bugs import Planted
from tests.simulation.runtime.checkers import Offsets, Results
from tests.simulation.runtime.clients.producer import SimProducer
from tests.simulation.runtime.world import RuntimeWorld
from tests.simulation.world import Setting, World


def rows_joined_that_wait_for_the_commit(world: World) -> AbstractContextManager[None]:
    """Make a foreign-key join read its tables through their caches, before the commit."""

    def make(original: Any) -> Any:
        return lambda at, **_: at

    return replaced(foreign_key, "replace", make)


def overtaken_answers_asked_no_more(world: World) -> AbstractContextManager[None]:
    """Make an inner foreign-key join drop an overtaken response without asking again."""

    def make(original: Any) -> Any:
        def resolve(*arguments: Any, subscription_step: str | None, **rest: Any) -> Operator:
            operator = original(*arguments, subscription_step=subscription_step, **rest)

            def bind(at: Binding) -> Any:
                step = subscription_step
                children = {**at.children, step: _unheard} if step else at.children
                return operator(replace(at, children=children))

            return bind

        return resolve

    return replaced(foreign_key_steps, "join_responses", make)


def _unheard(*asked: Any) -> None:
    pass


def empty_partitions_not_waited_for(world: World) -> AbstractContextManager[None]:
    """Make a task that reads several partitions go on while one of them is empty."""

    def make(original: Any) -> Any:
        return lambda idle_ms, buffered, **kept: original(NEVER_WAIT, buffered, **kept)

    return replaced(assembly, "RecordOrderSettings", make)


def offsets_sent_of_what_advanced_alone(world: World) -> AbstractContextManager[None]:
    """Make a partition from which nothing was read keep the metadata of an earlier commit."""

    def make(original: Any) -> Any:
        def offsets(self: Task) -> list[tuple[Partition, OffsetAndMetadata]]:
            sent: dict[Partition, int] = self.__dict__.setdefault("sent", {})
            every: list[tuple[Partition, OffsetAndMetadata]] = original(self)
            found = [(p, held) for p, held in every if sent.get(p) != held.offset]
            sent |= {p: held.offset for p, held in found}
            return found or every

        return offsets

    return replaced(Task, "committable_offsets", make)


def changelogs_left_out_of_the_ledger(world: World) -> AbstractContextManager[None]:
    """Make the ledger leave out what a transaction wrote to changelogs."""

    def make(original: Any) -> Any:
        def take(self: DeliveredOffsets) -> dict[Partition, tuple[WrittenRange, ...]]:
            found: dict[Partition, tuple[WrittenRange, ...]] = original(self)
            return {p: runs for p, runs in found.items() if not p.topic.endswith("-changelog")}

        return take

    return replaced(DeliveredOffsets, "pop_offset_runs", make)


def ledger_written_with_the_offsets_before(world: World) -> AbstractContextManager[None]:
    """Make the ledger name the offsets that its tasks had committed before."""

    def make(original: Any) -> Any:
        def write(self: LedgerWriter, producer: Any, tasks: Collection[Task]) -> None:
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

    return replaced(LedgerWriter, "write_transaction", make)


def restored_versions_are_the_latest_alone(world: World) -> AbstractContextManager[None]:
    """Make a restore keep only the last of a key's versions in a batch, as other stores do."""

    def make(original: Any) -> Any:
        def replay(
            self: Any,
            entries: Iterable[ChangelogEntry],
            checkpoint: StoreCheckpoint,
        ) -> None:
            latest = {entry[0]: entry for entry in entries}
            original(self, latest.values(), checkpoint)

        return replay

    return replaced(VersionedStore, "replay_changelog", make)


def dead_letters_outside_of_transactions(world: World) -> AbstractContextManager[None]:
    """Make a producer outside of the transaction write the dead letters."""

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

    return replaced(FailureHandler, "write_dead_letter", make)


def coordinator_away_taken_for_a_yes(world: World) -> AbstractContextManager[None]:
    """Make a worker count itself as a member while the coordinator is not available."""

    def make(original: Any) -> Any:
        def is_membership_confirmed(self: Any) -> bool:
            with self._coordinator.use_connection() as connection:
                code = send_heartbeat(
                    connection,
                    self._group_id,
                    self.instance_id,
                    self._current,
                )
                return code not in MEMBERSHIP_LOST_ERRORS

        return is_membership_confirmed

    return replaced(ClassicProtocolMember, "is_membership_confirmed", make)


def ends_of_partitions_forgotten(world: World) -> AbstractContextManager[None]:
    """Make a partition of which nothing was fetched yet count as read to its end."""

    def make(original: Any) -> Any:
        def lag(self: Any, partition: Partition) -> int | None:
            found: int | None = original(self, partition)
            if partition in self._fetched_ends:
                self._fetched_ends[partition] = -1
            return found

        return lag

    return replaced(DataConsumer, "measure_lag", make)


def deletions_not_copied(world: World) -> AbstractContextManager[None]:
    """Make the copy of a global table keep rows that its topic has deleted."""

    def make(original: Any) -> Any:
        def apply(
            self: TopicReplica, records: Iterable[CopiedRecord], checkpoint: StoreCheckpoint
        ) -> None:
            original(self, [each for each in records if each[3] is not None], checkpoint)

        return apply

    return replaced(TopicReplica, "write_copied_records", make)


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
    Planted(
        overtaken_answers_asked_no_more,
        (Results,),
        "damage",
        FOREIGN | {"caching": False, "commit_interval_ms": 400},
    ),
    Planted(empty_partitions_not_waited_for, (Results,), "kills", MERGED),
    Planted(offsets_sent_of_what_advanced_alone, (Offsets,), "kills", MERGED),
    Planted(restored_versions_are_the_latest_alone, (Results,), "damage", VERSIONED),
    Planted(dead_letters_outside_of_transactions, (Results,), "kills", HANDLED),
    Planted(ends_of_partitions_forgotten, (Results,), "broker", LOOKED_UP),
    Planted(deletions_not_copied, (checkers.Globals,), "kills", LOOKED_UP | {"persistent": True}),
    Planted(changelogs_left_out_of_the_ledger, (checkers.Ledger,), "kills", LEDGER),
    Planted(ledger_written_with_the_offsets_before, (checkers.Ledger,), "kills", LEDGER),
)
