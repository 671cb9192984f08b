"""Plant bugs in the runtime, each of which breaks one promise that a checker must see broken.

They are put in from outside, by replacing a function for as long as a history runs; the product has
no switch for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from state.buffer import BufferStore
from state.key_value import KeyValueStore
from state.store import ChangelogEntry
from state.write_behind import WriteBehindDisk
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.membership.broker_outage import BrokerOutage
from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.group_join import GroupJoin
from streams.membership.group_member import Membership
from streams.membership.protocol import AssignmentInfo
from streams.runtime.assigning import group_assignment
from streams.runtime.assigning.topology_versions import TaskNumbers
from streams.runtime.changelogs.changelog import RestoreStart
from streams.runtime.clients import Admin, DataConsumer, StreamsProducer
from streams.runtime.restoring import changelog_reader
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.threads import commit, loop, member_creation
from streams.runtime.threads.rebalance import ThreadRebalance
from streams.runtime.threads.thread_recovery import ThreadRecovery
from tests.simulation.bugs import replaced
from tests.simulation.runtime.checkers import (
    Closed,
    ExactlyOnce,
    Fenced,
    Offsets,
    Owners,
    RuntimeChecker,
    Stores,
)
from tests.simulation.runtime.machine import SimDirectory
from tests.simulation.world import Setting, World

Bug = Callable[[World], AbstractContextManager[None]]


def outages_counted_as_failures(world: World) -> AbstractContextManager[None]:
    """Make the time-out of a task run while no broker answers, so that an outage ends threads."""

    def measure_all(self: BrokerOutage, since_s: float, limit_s: float) -> bool:
        return self._host.monotonic_s() - since_s > limit_s

    def recover(original: Any) -> Any:
        return lambda self, error: False

    return several(
        replaced(BrokerOutage, "is_overdue", lambda original: measure_all),
        replaced(ThreadRecovery, "is_broker_away", recover),
    )


@contextmanager
def several(*planted: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as stack:
        for each in planted:
            stack.enter_context(each)
        yield


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

    return replaced(commit, "collect_committable_offsets", make)


def restore_stops_at_the_last_stable_offset(world: World) -> AbstractContextManager[None]:
    """Make a restore end at the last stable offset without comparing the committed positions.

    It misses what a transaction wrote whose marker has not come yet.
    """

    def make(original: Any) -> Any:
        def latest(
            self: Admin, partitions: list[Partition], *timeout: float
        ) -> dict[Partition, int]:
            found: dict[Partition, int] = original(self, partitions, *timeout)
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


def _find_database_disk(store: Any) -> Any:
    """Return the disk that has a store's database, below changes that wait."""
    disk = store._disk
    return disk._disk if isinstance(disk, WriteBehindDisk) else disk


def stores_written_before_the_commit(world: World) -> AbstractContextManager[None]:
    """Make stores write before the commit, so that the disk has what may still be aborted."""

    def make(original: Any) -> Any:
        def offsets(self: Task) -> list[tuple[Partition, OffsetAndMetadata]]:
            found: list[tuple[Partition, OffsetAndMetadata]] = original(self)
            for logged in self.stores.logged.values():
                disk = _find_database_disk(logged.store)
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
                _find_database_disk(self).database.checkpoint = checkpoint
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
                self.transaction_age.note_end()

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
        def restored(self: Task, positions: Any, *rest: Any, **named: Any) -> None:
            original(self, {**positions, **self.__dict__.pop("known", {})}, *rest, **named)

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
        def take_over(self: ThreadRebalance, assigned: AssignmentInfo) -> None:
            if self._owned_generation >= 0:
                entered = self._member.current_membership.generation
                self._owned_generation = entered - 1
            original(self, assigned)

        return take_over

    return replaced(ThreadRebalance, "adopt_assignment_or_raise_shutdown", make)


def nobody_is_fenced_before_the_offsets_are_read(world: World) -> AbstractContextManager[None]:
    """Make a worker claim its transactional id only when the first transaction begins."""

    def call(original: Any) -> Any:
        def called(self: StreamsProducer, name: str, *arguments: Any, **how: Any) -> Any:
            if name == "init_transactions":
                self.__dict__["unclaimed"] = arguments
                return None
            if name == "begin_transaction" and (claim := self.__dict__.pop("unclaimed", None)):
                original(self, "init_transactions", *claim)
            return original(self, name, *arguments, **how)

        return called

    return replaced(StreamsProducer, "call_client", call)


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
    """Make a worker read committed offsets without waiting for pending ones.

    Those of a worker that is gone are pending until their time-out, as where brokers list no
    transactions.
    """

    def make(original: Any) -> Any:
        def locate(self: TaskCreator, tasks: Iterable[Task]) -> Any:
            ask = self._committed_offsets
            self._committed_offsets = lambda partitions: ask(partitions)._replace(pending=[])
            try:
                return original(self, tasks)
            finally:
                self._committed_offsets = ask

        return locate

    return several(
        replaced(TaskCreator, "start_restoring_from_committed", make),
        replaced(TaskCreator, "find_overtaken_tasks", make),
        replaced(member_creation, "abort_departed_transactions", lambda original: lambda *_: []),
    )


def restore_ends_before_the_disk_has_it(world: World) -> AbstractContextManager[None]:
    """Make a restore end before the loaded data are durable, unlike the next checkpoint."""

    def make(original: Any) -> Any:
        return lambda self: None

    def commit(original: Any) -> Any:
        def committed(self: Any, checkpoint: Any) -> None:
            disk = _find_database_disk(self)
            disk._loaded, disk._loaded_to = {}, None
            original(self, checkpoint)

        return committed

    return several(
        replaced(KeyValueStore, "finish_restore", make), replaced(KeyValueStore, "commit", commit)
    )


def step_times_not_carried(world: World) -> AbstractContextManager[None]:
    """Make a step forget its stream time when its task moves, so that windows close again."""

    def make(original: Any) -> Any:
        return lambda self, *given, **named: original(self, *given[:3], **named)

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
        "assign_and_save_directory_numbers",
        lambda original: lambda self, wanted: {n: n for n in wanted},
    )


def tasks_assigned_before_they_are_revoked(world: World) -> AbstractContextManager[None]:
    """Make a leader assign a task at once that another member is told to revoke."""

    def make(original: Any) -> Any:
        def withhold(targets: Any, owners: Any) -> Any:
            withheld = original(targets, owners)
            return withheld._replace(tasks={m: sorted(tasks) for m, tasks in targets.items()})

        return withhold

    return replaced(group_assignment, "withhold_owned_tasks", make)


def generation_entered_before_its_assignment(world: World) -> AbstractContextManager[None]:
    """Make a member commit in a new generation as soon as JoinGroup is answered.

    SyncGroup comes late, as with a slow leader.
    """

    def sync(original: Any) -> Any:
        def assign_and_sync(self: GroupJoin, joined: Any) -> AssignmentInfo:
            early = Membership(int(joined.generation_id), joined.member_id)
            self.__dict__["early"] = early
            self._closed.wait(0.3)
            found: AssignmentInfo = original(self, joined)
            return found

        return assign_and_sync

    def enter(original: property) -> Any:
        def current(self: ClassicProtocolMember) -> Membership:
            early = vars(self._join).get("early") if self._join is not None else None
            return early or self._current

        return property(current)

    return several(
        replaced(GroupJoin, "assign_and_sync", sync),
        replaced(ClassicProtocolMember, "current_membership", enter),
        replaced(
            ClassicProtocolMember,
            "is_generation_over",
            lambda original: property(lambda self: False),
        ),
    )


def tasks_of_others_committed_in_the_next_generation(world: World) -> AbstractContextManager[None]:
    """Make a member commit tasks that its next assignment does not have, as if it revoked them.

    The leader is one that takes tasks away without revoking them.
    """

    def make(original: Any) -> Any:
        def take_over(self: ThreadRebalance, assigned: AssignmentInfo) -> None:
            gone = set(self._tasks.by_name) - set(assigned.tasks)
            original(self, assigned._replace(revoked=tuple(gone)))

        return take_over

    return several(
        replaced(group_assignment, "find_task_owners", lambda original: lambda claims: {}),
        replaced(ThreadRebalance, "adopt_assignment_or_raise_shutdown", make),
    )


def revoked_tasks_forgotten(world: World) -> AbstractContextManager[None]:
    """Make a member that has revoked tasks go on without another join."""

    def make(original: Any) -> Any:
        def take_over(self: ThreadRebalance, assigned: AssignmentInfo) -> None:
            original(self, assigned)
            self._must_join = False

        return take_over

    return replaced(ThreadRebalance, "adopt_assignment_or_raise_shutdown", make)


def revoked_tasks_of_a_former_life_forgotten(world: World) -> AbstractContextManager[None]:
    """Make a member join again only for revoked tasks that it runs.

    One that was killed and has come back runs none of those that its stored assignment revokes.
    """

    def make(original: Any) -> Any:
        def take_over(self: ThreadRebalance, assigned: AssignmentInfo) -> None:
            running = self._tasks.by_name.keys() & set(assigned.revoked)
            original(self, assigned)
            self._must_join = bool(running)

        return take_over

    return replaced(ThreadRebalance, "adopt_assignment_or_raise_shutdown", make)


ROUND_BUGS: tuple[tuple[Bug, str], ...] = (
    (revoked_tasks_forgotten, "rebalances"),
    (revoked_tasks_of_a_former_life_forgotten, "killed owners"),
)
"""After which a task is nobody's for ever, each with the faults that bring it out."""


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
STRAGGLERS: dict[str, Any] = {
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
SELDOM = {"commit_interval_ms": 5_000, "world": Setting(transaction_timeout_ms=10_000)}
"""A commit that is refused while a member joins would roll its tasks back, and hide the bug."""
BUGS = (
    Planted(punctuation_commits_no_offsets, (Offsets,), "zombies", TICK | SHORT),
    Planted(
        restore_stops_at_the_last_stable_offset,
        (ExactlyOnce,),
        "rebalances",
        COLLECT | {"slow_markers": 0.8},
    ),
    Planted(
        rollback_keeps_an_object,
        (ExactlyOnce,),
        "broker",
        # Only a rollback before the changelog is written, of a task that stays, keeps the cache.
        {
            "kind": "count",
            "caching": True,
            "workers": 2,
            "guarantee": "exactly_once_v2",
            "session_timeout_ms": 6_000,
            "max_poll_interval_ms": 4_000,
        },
    ),
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
        COLLECT | STRAGGLERS | SELDOM,
    ),
    Planted(tasks_assigned_before_they_are_revoked, (Owners,), "rebalances"),
    Planted(generation_entered_before_its_assignment, (Owners,), "rebalances"),
    Planted(tasks_of_others_committed_in_the_next_generation, (Owners,), "rebalances"),
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
