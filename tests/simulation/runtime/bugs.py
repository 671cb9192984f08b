"""Plant bugs in the runtime, each of which breaks one promise that a checker must see broken.

They are put in from outside, by replacing a function for as long as a history runs; the product has
no switch for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from state.buffer import BufferStore
from state.key_value import KeyValueStore
from state.store import ChangelogEntry
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime import assembly, changelog_reader, commit, loop
from streams.runtime.changelog import RestoreStart
from streams.runtime.clients import Admin, DataConsumer, StreamsProducer
from streams.runtime.rebalance import ThreadRebalance
from streams.runtime.task import Task
from streams.runtime.task_creator import TaskCreator
from streams.runtime.topology_versions import TaskNumbers
from tests.simulation.bugs import replaced
from tests.simulation.runtime.checkers import (
    Closed,
    ExactlyOnce,
    Fenced,
    Offsets,
    RuntimeChecker,
    Stores,
)
from tests.simulation.runtime.machine import SimDirectory
from tests.simulation.runtime.world import RuntimeWorld
from tests.simulation.world import World

Bug = Callable[[World], AbstractContextManager[None]]


def several(*planted: AbstractContextManager[None]) -> AbstractContextManager[None]:
    stack = ExitStack()
    for each in planted:
        stack.enter_context(each)
    return stack  # type: ignore[return-value]


def punctuation_commits_no_offsets(world: World) -> AbstractContextManager[None]:
    """Make a commit without input offsets skip the check of the generation.

    A zombie then commits what its punctuations wrote.
    """

    def make(original: Any) -> Any:
        def offsets(tasks: Iterable[Task]) -> list[tuple[Partition, OffsetAndMetadata]]:
            found = []
            for task in tasks:
                sent: dict[Partition, int] = task.__dict__.setdefault("sent", {})
                found += [
                    (p, held)
                    for p, held in task.committable_offsets()
                    if sent.get(p) != held.offset
                ]
                sent |= {p: held.offset for p, held in found}
            return found

        return offsets

    return replaced(commit, "_committable_offsets", make)


def restore_stops_at_the_last_stable_offset(world: World) -> AbstractContextManager[None]:
    """Make a restore end at the last stable offset without comparing the committed positions.

    It misses what a transaction wrote whose marker has not come yet.
    """

    def make(original: Any) -> Any:
        def latest(self: Admin, partitions: list[Partition]) -> dict[Partition, int]:
            found: dict[Partition, int] = original(self, partitions)
            broker = world.broker
            for topic, number in partitions:
                partition = broker.topics.find_partition(topic, number)
                if partition is not None:
                    found[Partition(topic, number)] = partition.last_stable_offset
            return found

        return latest

    def begin(original: Any) -> Any:
        return lambda *arguments, required_offset, **rest: original(
            *arguments, required_offset=0, **rest
        )

    return several(
        replaced(Admin, "fetch_latest_offsets", make),
        replaced(changelog_reader, "find_restore_start", begin),
    )


def rollback_keeps_an_object(world: World) -> AbstractContextManager[None]:
    """Make the cache keep an object across a rollback that user code has changed in place."""

    def make(original: Any) -> Any:
        def rollback(self: Any) -> None:
            self._cached.entries.update(self._overlay)
            original(self)

        return rollback

    return replaced(KeyValueStore, "rollback_transaction", make)


def stores_written_before_the_commit(world: World) -> AbstractContextManager[None]:
    """Make stores write before the commit, so that the disk has what may still be aborted."""

    def make(original: Any) -> Any:
        def offsets(self: Task) -> list[tuple[Partition, OffsetAndMetadata]]:
            found: list[tuple[Partition, OffsetAndMetadata]] = original(self)
            for logged in self.stores.logged.values():
                disk = logged.store._disk  # type: ignore[attr-defined]
                drained = logged.store._drained  # type: ignore[attr-defined]
                changes = {} if drained is None else drained.changes
                checkpoint = logged.store.read_checkpoint()
                if changes and checkpoint is not None:
                    disk.write_changes(
                        changes, replace(checkpoint, position=logged.changelog_position)
                    )
            return found

        return offsets

    return replaced(Task, "committable_offsets", make)


def checkpoint_ahead_of_the_data(world: World) -> AbstractContextManager[None]:
    """Make a store write its checkpoint before the data, which a crash in between loses."""

    def make(original: Any) -> Any:
        def commit(self: Any, checkpoint: Any) -> None:
            if self.read_checkpoint() is not None:
                self._disk.database.checkpoint = checkpoint
            original(self, checkpoint)

        return commit

    return replaced(KeyValueStore, "commit", make)


def unknown_commit_taken_for_success(world: World) -> AbstractContextManager[None]:
    """Make a commit with an unknown outcome count as a success."""

    def make(original: Any) -> Any:
        def end(self: StreamsProducer) -> None:
            try:
                original(self)
            except OutcomeUnknown:
                self._is_transaction_open = False

        return end

    return replaced(StreamsProducer, "commit_transaction", make)


def offsets_not_read_back(world: World) -> AbstractContextManager[None]:
    """Make a worker go on from its former offsets after a commit with an unknown outcome."""

    def roll_back(original: Any) -> Any:
        def rollback(self: Task) -> None:
            known = dict(self.positions)
            original(self)
            self.__dict__["known"] = known

        return rollback

    def restore(original: Any) -> Any:
        def restored(self: Task, positions: Any, *rest: Any) -> None:
            original(self, {**positions, **self.__dict__.pop("known", {})}, *rest)

        return restored

    return several(
        replaced(Task, "roll_back", roll_back), replaced(Task, "start_restoring", restore)
    )


def generation_not_sent(world: World) -> AbstractContextManager[None]:
    """Make a commit send its offsets without a generation, so that a zombie isn't refused."""

    def make(original: Any) -> Any:
        def group_metadata(group: str, *_: Any) -> Any:
            return original(group, -1, "", None)

        return group_metadata

    return replaced(loop, "encode_group_metadata", make)


def rollback_keeps_the_place_in_the_input(world: World) -> AbstractContextManager[None]:
    """Make a rollback leave the consumer's position, so that records are not read again."""

    def take(original: Any) -> Any:
        def taken(self: DataConsumer, *arguments: Any) -> Any:
            found = original(self, *arguments)
            places = self.__dict__.setdefault("places", {})
            for message in found:
                place = Partition(message.topic(), message.partition())
                places[place] = message.offset() + 1
            return found

        return taken

    def add(original: Any) -> Any:
        def added(self: DataConsumer, positions: dict[Partition, int]) -> None:
            places = self.__dict__.setdefault("places", {})
            original(self, {p: max(at, places.get(p, 0)) for p, at in positions.items()})

        return added

    return several(
        replaced(DataConsumer, "poll_records", take), replaced(DataConsumer, "add_partitions", add)
    )


def missed_generation_not_noticed(world: World) -> AbstractContextManager[None]:
    """Make a worker keep its tasks over a missed generation, in which another may have had them."""

    def make(original: Any) -> Any:
        def join(self: ThreadRebalance) -> None:
            self._tasks.roll_back_tasks = lambda: None  # type: ignore[method-assign]
            try:
                original(self)
            finally:
                del self._tasks.roll_back_tasks

        return join

    return replaced(ThreadRebalance, "_rejoin_group", make)


def nobody_is_fenced_before_the_offsets_are_read(world: World) -> AbstractContextManager[None]:
    """Make a worker claim its transactional id only when the first transaction begins."""

    def call(original: Any) -> Any:
        def called(self: StreamsProducer, name: str, *arguments: Any) -> Any:
            if name == "init_transactions":
                self.__dict__["unclaimed"] = arguments
                return None
            if name == "begin_transaction" and (claim := self.__dict__.pop("unclaimed", None)):
                original(self, "init_transactions", *claim)
            return original(self, name, *arguments)

        return called

    return replaced(StreamsProducer, "_call_producer", call)


def positions_taken_before_delivery(world: World) -> AbstractContextManager[None]:
    """Make a commit name the changelogs' positions before its records were delivered."""

    def make(original: Any) -> Any:
        def flush(self: StreamsProducer) -> None:
            self.poll_delivery_reports()

        return flush

    return replaced(StreamsProducer, "flush", make)


def offsets_committed_before_delivery(world: World) -> AbstractContextManager[None]:
    """Make a worker commit offsets before delivery, which loses records in a crash."""
    return positions_taken_before_delivery(world)


def stores_emptied_at_each_start(world: World) -> AbstractContextManager[None]:
    """Make every start of a worker empty its stores."""

    def make(original: Any) -> Any:
        def begin_at(store: str, checkpoint: Any, changelog: Any, **rest: Any) -> RestoreStart:
            begin: RestoreStart = original(store, checkpoint, changelog, **rest)
            return RestoreStart(changelog.start_offset, begin.since_ms, "who knows")

        return begin_at

    return replaced(changelog_reader, "find_restore_start", make)


def stores_replayed_from_the_start(world: World) -> AbstractContextManager[None]:
    """Make a restore ignore the store's checkpoint and replay the changelog without emptying it."""

    def make(original: Any) -> Any:
        def begin_at(store: str, checkpoint: Any, changelog: Any, **rest: Any) -> RestoreStart:
            begin: RestoreStart = original(store, checkpoint, changelog, **rest)
            return begin._replace(position=changelog.start_offset)

        return begin_at

    return replaced(changelog_reader, "find_restore_start", make)


def pending_offsets_taken_for_none(world: World) -> AbstractContextManager[None]:
    """Make a worker read committed offsets without waiting for pending ones."""

    def make(original: Any) -> Any:
        def locate(self: TaskCreator, tasks: Iterable[Task]) -> Any:
            ask = self._committed_offsets
            self._committed_offsets = lambda partitions: ask(partitions)._replace(pending=[])
            try:
                return original(self, tasks)
            finally:
                self._committed_offsets = ask

        return locate

    return replaced(TaskCreator, "start_restoring_from_committed", make)


def restore_ends_before_the_disk_has_it(world: World) -> AbstractContextManager[None]:
    """Make a restore end before the loaded data are durable, unlike the next checkpoint."""

    def make(original: Any) -> Any:
        return lambda self: None

    def commit(original: Any) -> Any:
        def committed(self: Any, checkpoint: Any) -> None:
            self._disk._loaded, self._disk._loaded_to = {}, None
            original(self, checkpoint)

        return committed

    return several(
        replaced(KeyValueStore, "finish_restore", make), replaced(KeyValueStore, "commit", commit)
    )


def step_times_not_carried(world: World) -> AbstractContextManager[None]:
    """Make a step forget its stream time when its task moves, so that windows close again."""

    def make(original: Any) -> Any:
        return lambda self, *given: original(self, *given[:3])

    return replaced(Task, "start_restoring", make)


def what_has_left_stays_on_disk(world: World) -> AbstractContextManager[None]:
    """Make a buffer keep emitted records on the disk, so that it emits them again."""

    def make(original: Any) -> Any:
        def commit(self: BufferStore, checkpoint: Any) -> None:
            self._drained = [entry for entry in self._drained or [] if entry[1] is not None]
            original(self, checkpoint)

        return commit

    return replaced(BufferStore, "commit", make)


def deletions_left_out_of_changelogs(world: World) -> AbstractContextManager[None]:
    """Make changelogs leave out deletions, so that a restore has the deleted rows."""

    def make(original: Any) -> Any:
        def drain(self: Any) -> list[ChangelogEntry]:
            return [entry for entry in original(self) if entry[1] is not None]

        return drain

    return replaced(KeyValueStore, "drain_writes", make)


def tasks_handed_out_in_the_leaders_numbers(world: World) -> AbstractContextManager[None]:
    """Make a leader assign tasks by its own numbers, which another version doesn't share."""

    def make(original: Any) -> Any:
        def number_for_member(self: Any, member: str, tasks: Any) -> list[str]:
            return sorted(tasks)

        return number_for_member

    return replaced(TaskNumbers, "number_for_member", make)


def stale_assignments_kept(world: World) -> AbstractContextManager[None]:
    """Make a static member that comes back keep an assignment made for another version of it."""
    return replaced(AssignmentInfo, "is_for_other_topology", lambda original: lambda *_: False)


def directories_named_by_own_numbers(world: World) -> AbstractContextManager[None]:
    """Make task directories have a version's own numbers, so that two versions block each other."""
    return replaced(
        SimDirectory,
        "number_subtopologies",
        lambda original: lambda self, wanted: {n: n for n in wanted},
    )


VERSION_BUGS: tuple[Bug, ...] = (
    tasks_handed_out_in_the_leaders_numbers,
    stale_assignments_kept,
    directories_named_by_own_numbers,
)
"""Of two versions that number their sub-topologies otherwise: an input is processed by nobody."""


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Holds a bug, the checkers of which each must see it alone, and where it shows.

    That is the faults that most often bring it out, and a setting.
    """

    bug: Bug
    checkers: tuple[type[RuntimeChecker], ...]
    focus: str
    setting: Mapping[str, Any] = field(default_factory=dict)


COLLECT = {"kind": "collect", "persistent": True}
TICK = {"kind": "tick", "persistent": True}
SHORT = {"session_timeout_ms": 1_000}
STRAGGLERS = {
    "workers": 2,
    "threads": 1,
    "together": False,
    "session_timeout_ms": 6_000,
    "max_poll_interval_ms": 1_000,
    "preemption": 0.02,
    "unsteady": 0.0,
    "switches": False,
    "guarantee": "exactly_once_v2",
    "commit_interval_ms": 100,
}
BUGS = (
    Planted(punctuation_commits_no_offsets, (Offsets,), "zombies", TICK | SHORT),
    Planted(
        restore_stops_at_the_last_stable_offset,
        (ExactlyOnce,),
        "rebalances",
        COLLECT | {"slow_markers": 0.8},
    ),
    Planted(rollback_keeps_an_object, (ExactlyOnce,), "lost commits", {"kind": "count"}),
    Planted(stores_written_before_the_commit, (Stores, ExactlyOnce), "kills", COLLECT),
    Planted(checkpoint_ahead_of_the_data, (Stores, ExactlyOnce), "kills", COLLECT),
    Planted(unknown_commit_taken_for_success, (Stores,), "lost commits", COLLECT),
    Planted(offsets_not_read_back, (ExactlyOnce,), "lost commits", COLLECT),
    Planted(generation_not_sent, (ExactlyOnce,), "zombies", TICK | SHORT),
    Planted(rollback_keeps_the_place_in_the_input, (ExactlyOnce,), "network"),
    Planted(
        missed_generation_not_noticed,
        (ExactlyOnce,),
        "stragglers",
        COLLECT | STRAGGLERS,
    ),
    Planted(nobody_is_fenced_before_the_offsets_are_read, (Fenced,), "kills"),
    Planted(positions_taken_before_delivery, (Offsets,), "kills", COLLECT),
    Planted(
        offsets_committed_before_delivery,
        (ExactlyOnce,),
        "kills",
        {"kind": "copy", "guarantee": "at_least_once"},
    ),
    Planted(stores_emptied_at_each_start, (Stores,), "kills", COLLECT),
    Planted(stores_replayed_from_the_start, (Stores,), "kills", COLLECT),
    Planted(pending_offsets_taken_for_none, (ExactlyOnce,), "zombies", COLLECT | SHORT),
    Planted(restore_ends_before_the_disk_has_it, (Stores,), "kills", COLLECT),
    Planted(step_times_not_carried, (Closed,), "kills", {"kind": "closing", "persistent": True}),
    Planted(what_has_left_stays_on_disk, (Closed,), "kills", {"kind": "suppress"}),
    Planted(deletions_left_out_of_changelogs, (Closed, Stores), "damage", {"kind": "outer"}),
)


def members_of_the_release_before(world: World) -> AbstractContextManager[None]:
    """Make every second life of a worker send no topology, as the release before does.

    That is no bug. As a leader it hears nothing of the others' topologies.
    """

    def make(original: Any) -> Any:
        def member(worker: Any, number: int, planner: Any) -> Any:
            made = original(worker, number, planner)
            assert isinstance(world, RuntimeWorld)
            if int(world.running().process.name.partition("#")[2]) % 2:
                made._topology = None
                made._plan = lambda members: planner.plan(
                    {
                        name: SubscriptionInfo(each.tasks, each.shutdown)
                        for name, each in members.items()
                    }
                )
            return made

        return member

    return replaced(assembly, "_create_member", make)
