"""Run random histories of a streams group with faults, and check the laws that it must keep.

Up to 30 members of a few processes join, leave, crash, lose answers and fall silent, some of them
static; topics grow, go and come back; standby tasks come and go; an application that has stopped is
deleted and starts with another topology; the disk fails and the broker starts again. A member goes
on with what it runs until it hears of a change, also one that the broker has given up.

The laws, which `check` looks at after each step, each with the words that name its violation:

- two committers: of two members that run an active task, one at most can commit its offsets;
- two roles: no two members of a process have a task, in whatever roles;
- epochs: they don't decrease, and are in order: member, target, group;
- moved: a new target leaves each member the active tasks that it has, up to a fair share;
- unchanged: a heartbeat with nothing new is decided at a glance as by the whole decision;
- endpoints: what members are told of endpoints is what these serve now.

`check_reload` compares the state with one that is loaded from the log, compacted or not. `settle`
stops the faults: then every task runs again, with its standby tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from coordinator.errors import Code, Refused
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import GroupCodec, GroupShardState
from coordinator.groups.streams.command import StreamsHeartbeat
from coordinator.groups.streams.config import StreamsGroupSettings
from coordinator.groups.streams.endpoints import EndpointCache, EndpointPartitions
from coordinator.groups.streams.heartbeat import process_streams_heartbeat
from coordinator.groups.streams.state import AWAY_EPOCH, LEFT_EPOCH, StreamsGroup
from coordinator.groups.streams.tasks import NO_ROLES, TaskId, TaskRoles
from coordinator.groups.streams.topology import (
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)
from coordinator.groups.streams.unchanged import (
    decide_unchanged_streams_heartbeat,
    has_no_streams_news,
)
from coordinator.groups.streams.validate import validate_streams_offset_commit
from coordinator.offsets.commit import CommittingMember, OffsetToCommit
from coordinator.shard.decision import LogRecordOrigin
from coordinator.shard.shard import BrokenInvariant
from coordinator.shard.slices import run_to_completion
from tests.unit.coordinator.fakes import FakeLog
from tests.unit.coordinator.groups.streams.members import GROUP, SESSION_MS, FakeStreamsMember
from tests.unit.coordinator.world import World

MEMBERS_MAX = 30
PROCESSES = 6
PARTITIONS = {"lines": 5, "orders": 3}
LOST = (Code.UNKNOWN_MEMBER_ID, Code.FENCED_MEMBER_EPOCH, Code.FENCED_INSTANCE_ID)


class BrokenLaw(Exception):
    """Reports a law that does not hold; the message begins with its words."""


def make_topology(random: Random, epoch: int) -> StreamsTopology:
    """Return a topology of one or two sub-topologies, of which at least one has state."""
    changelog = InternalTopic(f"app-{epoch}-store-changelog")
    repartition = InternalTopic(f"app-{epoch}-repartition")
    sources = random.choice([("lines",), ("orders",), ("lines", "orders")])
    if random.random() < 0.3:
        return StreamsTopology(
            epoch, (StreamsSubtopology("0", sources, changelog_topics=(changelog,)),)
        )
    reading = StreamsSubtopology("0", sources, repartition_sink_topics=(repartition.name,))
    keeping = StreamsSubtopology(
        "1", repartition_source_topics=(repartition,), changelog_topics=(changelog,)
    )
    return StreamsTopology(epoch, (reading, keeping))


class StreamsGroupHistory:
    """Represents the history of one seed."""

    def __init__(self, seed: int, members_max: int = MEMBERS_MAX) -> None:
        self.random = Random(seed)
        self.world = World()
        self.world.topics.delete("words")
        for name, count in PARTITIONS.items():
            self.world.topics.create(name, count)
        self.topology = make_topology(self.random, 1)
        self._members_max = members_max
        self._set_standby_count(self.random.choice((0, 1, 1, 2)))
        self.members: list[FakeStreamsMember] = []
        self.zombies: list[FakeStreamsMember] = []  # they run on, and send nothing
        self.away: list[FakeStreamsMember] = []
        self._made = 0
        self._told: dict[str, TaskRoles] = {}  # by member id, where it may run more
        self._epochs: dict[str, int] = {}
        self._before: tuple[int, dict[str, frozenset[TaskId]]] = (0, {})
        self.unchanged_count = 0
        self.endpoint_count = 0

    def _set_standby_count(self, standby_count: int) -> None:
        self.standby_count = standby_count
        self.world.streams_settings[GROUP] = StreamsGroupSettings(
            initial_rebalance_delay_ms=self.random.choice((0, 3_000)),
            assignment_interval_ms=self.random.choice((0, 1_000)),
            num_standby_replicas=standby_count,
        )

    # Steps

    def step(self) -> None:
        chances: list[tuple[Callable[[], None], int]] = [
            (self.beat, 60),
            (self.join, 10),
            (self.leave, 2),
            (self.go_away, 2),
            (self.come_back, 4),
            (self.fall_silent, 2),
            (self.crash, 2),
            (self.change_topics, 2),
            (self.change_standbys, 1),
            (self.replace_topology, 1),
            (self.pass_time, 6),
            (self.fail_disk, 2),
            (self.restart, 1),
        ]
        [what] = self.random.choices([each for each, _ in chances], [n for _, n in chances])
        what()

    def beat(self) -> None:
        if self.members:
            self._send_heartbeat(self.random.choice(self.members))

    def _send_heartbeat(self, member: FakeStreamsMember) -> None:
        """Send a heartbeat that may lack the tasks, or whose response may be lost."""
        if self.random.random() < 0.6:
            self._close_revoked_tasks(member)
        epoch, running = member.epoch, member.tasks
        try:
            if self.random.random() < 0.75:
                member.beat()
            else:
                member.send()
        except Refused as refused:
            if refused.code is Code.KAFKA_STORAGE_ERROR:
                return
            if refused.code not in (*LOST, Code.INVALID_REQUEST, Code.GROUP_ID_NOT_FOUND):
                raise
            self._join(member)
            return
        if self.random.random() < 0.2:
            member.epoch, member.tasks = epoch, running
        elif member.answer.assigned is not None:
            told = self._told[member.member_id] = member.tasks
            # What it is to revoke it runs until it closes it, before a later heartbeat.
            member.tasks = TaskRoles(
                told.active | running.active, told.standby | running.standby, told.warmup
            )
        self._create_topics(member)

    def _close_revoked_tasks(self, member: FakeStreamsMember) -> None:
        """Let a member run exactly the tasks that it was told last."""
        member.tasks = self._told.get(member.member_id, member.tasks)

    def _create_topics(self, member: FakeStreamsMember) -> None:
        """Create what the answer asks for, as the API does, unless that fails."""
        for topic in member.answer.topics_to_create:
            if self.random.random() < 0.8 and self.world.topics.get(topic.name) is None:
                self.world.topics.create(topic.name, topic.partition_count)

    def join(self) -> None:
        if len(self.members) < self._members_max:
            self._made += 1
            instance_id = f"i{self._made}" if self.random.random() < 0.3 else None
            process_id = f"p{self.random.randrange(PROCESSES)}"
            self._join(FakeStreamsMember(self.world, f"m{self._made}", process_id, instance_id))

    def _join(self, member: FakeStreamsMember) -> None:
        if member in self.members:
            self.members.remove(member)
        member.topology = self.topology
        member.tasks, member.epoch = NO_ROLES, 0
        self._told.pop(member.member_id, None)
        port = 7_000 + self._made
        endpoint = {"endpoint": ("h", port)} if self.random.random() < 0.5 else {}
        try:
            member.join(**endpoint)
        except Refused as refused:
            if refused.code not in (Code.KAFKA_STORAGE_ERROR, Code.UNRELEASED_INSTANCE_ID):
                raise
        else:
            self._epochs.pop(member.member_id, None)
            self.members.append(member)
            self._create_topics(member)

    def leave(self) -> None:
        self._go(LEFT_EPOCH)

    def go_away(self) -> None:
        self._go(AWAY_EPOCH)

    def _go(self, epoch: int) -> None:
        """Let a member leave after it has closed its tasks."""
        members = [m for m in self.members if m.instance_id is not None or epoch == LEFT_EPOCH]
        if not members:
            return
        member = self.random.choice(members)
        self.members.remove(member)
        if epoch == AWAY_EPOCH:
            self.away.append(member)
        member.tasks = NO_ROLES
        try:
            member.send(epoch=epoch)
        except Refused as refused:
            if refused.code not in (*LOST, Code.KAFKA_STORAGE_ERROR, Code.GROUP_ID_NOT_FOUND):
                raise

    def come_back(self) -> None:
        if self.away:
            member = self.away.pop()
            self._made += 1
            self._join(
                FakeStreamsMember(
                    self.world, f"m{self._made}", member.process_id, member.instance_id
                )
            )

    def fall_silent(self) -> None:
        """Let a member run on without a heartbeat, so that it will be fenced and not know it."""
        if self.members:
            member = self.random.choice(self.members)
            self.members.remove(member)
            self.zombies.append(member)

    def crash(self) -> None:
        if self.members:
            self.members.remove(self.random.choice(self.members))

    def change_topics(self) -> None:
        topics = self.world.topics
        name = self.random.choice([*PARTITIONS, *self._internal_names()])
        found = topics.get(name)
        if found is None:
            topics.create(name, PARTITIONS.get(name, 5))
        elif self.random.random() < 0.4:
            topics.delete(name)
        else:
            self._grow(name)

    def _grow(self, name: str) -> None:
        """Add a partition to a source, and to every internal topic, as an operator has to do."""
        topics = self.world.topics
        count = 1 + max(len(topic.partitions) for topic in topics)
        for each in (name, *self._internal_names()):
            if topics.get(each) is not None:
                topics.grow(each, count)

    def _internal_names(self) -> list[str]:
        return [
            topic.name
            for each in self.topology.subtopologies
            for topic in (*each.repartition_source_topics, *each.changelog_topics)
        ]

    def change_standbys(self) -> None:
        self._set_standby_count(self.random.choice((0, 1, 2)))

    def replace_topology(self) -> None:
        """Stop the application, delete its group, and let it start with another topology."""
        group = self.group
        if group is None or self.random.random() < 0.5:
            return
        self.members.clear()
        self.away.clear()
        self.world.clock.advance(2 * SESSION_MS)
        try:
            run_to_completion(self.world.groups.offsets.delete_group_in_slices(GROUP))
        except Refused:
            return
        self.topology = make_topology(self.random, self.topology.epoch + 1)
        self._epochs.clear()
        self._before = (0, {})
        for _ in range(3):
            self.join()

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice((100, 1_000, 11_000, SESSION_MS // 2)))

    def fail_disk(self) -> None:
        for log in self.world.group_logs:
            log.fail_after = self.random.randint(0, 2)
        for _ in range(3):
            self.beat()
            self.check()
        for log in self.world.group_logs:
            log.fail_after = None

    def restart(self) -> None:
        self.world.restart()

    # Laws

    @property
    def _shard(self) -> GroupShard:
        return self.world.groups.shards[self.world.groups.partition_of(GROUP)]

    @property
    def group(self) -> StreamsGroup | None:
        return self._shard.state.streams.get(GROUP)

    def check(self) -> None:
        group = self.group
        if group is None:
            return
        self._check_committers(group)
        self._check_roles(group)
        self._check_epochs(group)
        self._check_movement(group)
        self._check_heartbeats_at_a_glance(group)

    def _check_committers(self, group: StreamsGroup) -> None:
        committers: dict[TaskId, str] = {}
        for member in (*self.members, *self.zombies):
            for task in member.tasks.active:
                if not _may_commit(group, member, task):
                    continue
                other = committers.setdefault(task, member.member_id)
                if other != member.member_id:
                    raise BrokenLaw(f"two committers: {other} and {member.member_id} of {task}")

    def _check_roles(self, group: StreamsGroup) -> None:
        holders: dict[tuple[str, TaskId], str] = {}
        for member in group.members.values():
            for held in (member.assigned, member.revoking):
                for task in (*held.active, *held.standby, *held.warmup):
                    other = holders.setdefault((member.process_id, task), member.member_id)
                    if other != member.member_id:
                        raise BrokenLaw(f"two roles: {other} and {member.member_id} have {task}")

    def _check_epochs(self, group: StreamsGroup) -> None:
        for member in group.members.values():
            if member.epoch == AWAY_EPOCH:
                continue
            before = self._epochs.get(member.member_id, 0)
            if not before <= member.epoch <= group.target_epoch <= group.epoch:
                raise BrokenLaw(
                    f"epochs: {before}, {member.epoch}, {group.target_epoch}, {group.epoch}"
                )
            self._epochs[member.member_id] = member.epoch

    def _check_movement(self, group: StreamsGroup) -> None:
        """Compare a new target with what members had before it was computed."""
        target_epoch, had = self._before
        target = {each: group.target_of(each).active for each in group.members}
        tasks = frozenset().union(*target.values())
        if target_epoch < group.target_epoch and tasks:
            share = len(tasks) // len(target)
            for member_id, active in target.items():
                before = had.get(member_id, frozenset()) & tasks
                if len(active & before) < min(len(before), share):
                    raise BrokenLaw(f"moved: {member_id} had {before}, and is to have {active}")
        self._before = (
            group.target_epoch,
            {
                member_id: frozenset(member.assigned.active)
                for member_id, member in group.members.items()
            },
        )

    def _check_heartbeats_at_a_glance(self, group: StreamsGroup) -> None:
        """Decide a heartbeat without news of each member in both ways; it isn't executed."""
        context = self.world.groups.streams.create_context(self._shard, GROUP)
        configured = context.transient_state.configured
        for member in group.members.values():
            if configured is not None:
                cache = context.transient_state.endpoint_cache
                arguments = group, member, None, configured, context.topics
                cached, found = (
                    list(map(_tell_endpoint, each.list_endpoints(*arguments)))
                    for each in (cache, EndpointCache())
                )
                if cached != found:
                    raise BrokenLaw(f"endpoints: {cached}, and not {found}")
                self.endpoint_count += len(found)
            command = StreamsHeartbeat(
                GROUP,
                member.member_id,
                member.epoch,
                member.client_id,
                member.client_host,
                context.transient_state.endpoint_epoch,
            )
            if not has_no_streams_news(group, command, context):
                continue
            self.unchanged_count += 1
            quick = decide_unchanged_streams_heartbeat(
                member.member_id,
                member.epoch,
                command.endpoint_epoch,
                context.settings.session_timeout_ms,
                context.settings.heartbeat_interval_ms,
                context.settings.task_offset_interval_ms,
            )
            whole = process_streams_heartbeat(group, command, context, is_new=False)
            if (quick.response, list(quick.effects)) != (whole.response, list(whole.effects)) or (
                whole.records
            ):
                raise BrokenLaw(f"unchanged: {quick} and {whole}")

    def check_reload(self) -> None:
        for shard, log in zip(self.world.groups.shards, self.world.group_logs, strict=True):
            again = GroupShard("again", log, self.world.clock)
            again.log.replay_log()
            up_to = self.random.randint(0, log.end_offset)
            if not again.state == shard.state == load_compacted(log, up_to):
                raise BrokenLaw(f"reload: the log says otherwise, compacted up to {up_to}")

    def settle(self) -> None:
        """Stop all faults, and check that every task and standby task runs in the end."""
        for name, count in PARTITIONS.items():
            if self.world.topics.get(name) is None:
                self.world.topics.create(name, count)
        for name in self._internal_names():
            if self.world.topics.get(name) is not None:
                self.world.topics.delete(name)  # it may have other partitions than it needs
        self.world.clock.advance(2 * SESSION_MS)
        self.check()
        for _ in range(3):
            self.join()
            self.check()
        self._await_all_tasks()
        self.leave()
        self.check()
        self._await_all_tasks()

    def _await_all_tasks(self) -> None:
        for _ in range(40):
            self.world.clock.advance(5_000)
            self.check()
            for member in tuple(self.members):
                self._close_revoked_tasks(member)
                self._told.pop(member.member_id, None)
                try:
                    member.beat()
                except Refused:
                    self._join(member)
                self._create_topics(member)
                self.check()
        group = self.group
        if group is None or group.phase.value != "Stable":
            raise BrokenLaw(f"settled: {group}")
        running = [task for member in self.members for task in member.tasks.active]
        wanted = self._list_tasks()
        if sorted(running) != wanted:
            raise BrokenLaw(f"settled: {sorted(running)} run of {wanted}")
        self._check_standbys(group)

    def _list_tasks(self) -> list[TaskId]:
        """Return all tasks that the topology has with the topics that there are."""
        tasks: list[TaskId] = []
        for each in self.topology.subtopologies:
            found = map(self.world.topics.get, each.all_source_topics)
            count = max(len(topic.partitions) for topic in found if topic is not None)
            tasks += ((each.subtopology_id, index) for index in range(count))
        return sorted(tasks)

    def _check_standbys(self, group: StreamsGroup) -> None:
        """Check that each task with state has as many standby tasks as there are processes for."""
        process_count = len({member.process_id for member in group.members.values()})
        wanted = min(self.standby_count, process_count - 1)
        stateful = {
            each.subtopology_id for each in self.topology.subtopologies if each.changelog_topics
        }
        standbys = [task for member in self.members for task in member.tasks.standby]
        for task in (task for member in self.members for task in member.tasks.active):
            expected = wanted if task[0] in stateful else 0
            if standbys.count(task) != expected:
                raise BrokenLaw(
                    f"standbys: {task} has {standbys.count(task)}, and wants {expected}"
                )


def _tell_endpoint(listed: EndpointPartitions) -> tuple[object, ...]:
    return listed.endpoint, listed.active, listed.standby


def _may_commit(group: StreamsGroup, member: FakeStreamsMember, task: TaskId) -> bool:
    """Return whether the broker accepts the offsets of a task that the member runs."""
    if group.topology is None:
        return False
    subtopology_id, partition = task
    readers = group.topology.reader_ids.items()
    topic = next((name for name, reader in readers if reader == subtopology_id), None)
    if topic is None:
        return False
    committing = CommittingMember(member.epoch, member.member_id)
    offsets = [OffsetToCommit(topic, partition, 1)]
    try:
        validate_streams_offset_commit(group, committing, offsets, transactional=True)
    except Refused:
        return False
    return True


def load_compacted(log: FakeLog, up_to: int) -> GroupShardState:
    """Load a log whose records before an offset were compacted to the last one of each key."""
    codec = GroupCodec()
    records = [
        (found.offset, found.key, found.value)
        for batch in log.batches()
        for found in batch.iterate_records()
    ]
    last = {key: offset for offset, key, _ in records if offset < up_to}
    state = GroupShardState()
    for offset, key, value in records:
        if offset >= up_to or last[key] == offset:
            record = codec.decode_record(key, value)
            assert record is not None
            state.apply_record(record, LogRecordOrigin(offset, replaying=True))
    return state


def run_history(seed: int, steps: int, members_max: int = MEMBERS_MAX) -> str | None:
    """Run the history of a seed; return what was broken, or None."""
    history = StreamsGroupHistory(seed, members_max)
    try:
        for step in range(steps):
            history.step()
            history.check()
            if step % 40 == 0:
                history.check_reload()
        history.check_reload()
        history.settle()
    except BrokenInvariant as broken:
        return f"{seed=}: {broken.__cause__}"
    except BrokenLaw as broken:
        return f"{seed=}: {broken}"
    return None
