"""Test invariants of consumer groups in random histories with faults and restarts.

Members join, leave, time out and lose responses; topics are created, grow and are deleted; the disk
fails and the broker starts again. After each step:

- no partition has two owners, and no two members that the broker still has use the same one;
- epochs don't decrease, and are in order: member, target, group;
- the state loaded from the log equals the one in memory, also after a compaction.

In the end, with nothing but heartbeats, every partition gets its owner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.config import ConsumerGroupSettings
from coordinator.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    decide_unchanged_heartbeat,
    has_nothing_new,
    join_or_stay_in_group,
)
from coordinator.groups.consumer.state import AWAY_EPOCH, ConsumerGroup, ConsumerGroupMember
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import GroupCodec, GroupShardState
from coordinator.shard.decision import LogRecordOrigin
from tests.unit.coordinator.fakes import FakeBackground, FakeLog
from tests.unit.coordinator.groups.consumer.members import GROUP, Consumer, group_of
from tests.unit.coordinator.world import World

STEPS = 120
TOPICS = ("a", "b", "c", "d")
REGEXES = ("[ab]", ".*", "c|d", "nothing")
SESSION_MS = 45_000
LOST = (Code.UNKNOWN_MEMBER_ID, Code.FENCED_MEMBER_EPOCH, Code.FENCED_INSTANCE_ID)


class History:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World()
        self.world.background = FakeBackground(at_once=False)
        self.world.topics.delete("words")
        self.world.group_settings[GROUP] = ConsumerGroupSettings(
            assignment_interval_ms=self.random.choice((0, 1_000))
        )
        self.world.restart()
        for topic in TOPICS[:2]:
            self.world.topics.create(topic, self.random.randint(1, 6))
        self.members: list[Consumer] = []
        self.away: list[Consumer] = []
        self._made = 0
        self._epochs: dict[str, int] = {}
        self._group_epoch = 0
        self.unchanged_count = 0  # heartbeats that were found to have nothing new

    # Steps

    def step(self) -> None:
        chances: list[tuple[Callable[[], None], int]] = [
            (self.beat, 40),
            (self.join, 8),
            (self.leave, 3),
            (self.go_away, 2),
            (self.come_back, 4),
            (self.fall_silent, 2),
            (self.subscribe, 5),
            (self.change_topics, 3),
            (self.pass_time, 6),
            (self.resolve, 10),
            (self.fail_disk, 2),
            (self.restart, 1),
        ]
        [what] = self.random.choices([each for each, _ in chances], [n for _, n in chances])
        what()

    def beat(self) -> None:
        if self.members:
            self._send_heartbeat(self.random.choice(self.members))

    def _send_heartbeat(self, member: Consumer, **fields: object) -> None:
        """Send a heartbeat that may lack the owned partitions, or whose response may be lost."""
        if self.random.random() < 0.7:
            fields["owned"] = member.has
        try:
            answer = member.send(**fields)
        except Refused as refused:
            if refused.code in LOST:
                self._join(member)
            elif refused.code is not Code.KAFKA_STORAGE_ERROR:
                raise
            return
        if self.random.random() < 0.8:
            member.take(answer)

    def join(self) -> None:
        if len(self.members) >= 6:
            return
        self._made += 1
        instance_id = f"i{self._made}" if self.random.random() < 0.4 else None
        self._join(Consumer(self.world, f"m{self._made}", instance_id))

    def _join(self, member: Consumer) -> None:
        if member in self.members:
            self.members.remove(member)
        fields: dict[str, object] = {"assignor": self.random.choice((None, "range", "uniform"))}
        if self.random.random() < 0.3:
            fields["regex"] = self.random.choice(REGEXES)
        if self.random.random() < 0.1:
            member.instance_id = f"i{self.random.randint(1, 100)}"
        try:
            member.join(*self._some_topics(), **fields)
        except Refused as refused:
            if refused.code not in (Code.KAFKA_STORAGE_ERROR, Code.UNRELEASED_INSTANCE_ID):
                raise
        else:
            self._epochs.pop(member.member_id, None)
            self.members.append(member)

    def leave(self) -> None:
        self._go(to_come_back=False)

    def go_away(self) -> None:
        self._go(to_come_back=True)

    def _go(self, *, to_come_back: bool) -> None:
        members = [m for m in self.members if m.instance_id is not None or not to_come_back]
        if not members:
            return
        member = self.random.choice(members)
        self.members.remove(member)
        if to_come_back:
            self.away.append(member)
        try:
            member.leave(to_come_back=to_come_back)
        except Refused as refused:
            if refused.code not in (*LOST, Code.KAFKA_STORAGE_ERROR):
                raise

    def come_back(self) -> None:
        if self.away:
            member = self.away.pop()
            self._made += 1
            self._join(Consumer(self.world, f"m{self._made}", member.instance_id))

    def fall_silent(self) -> None:
        if self.members:
            self.members.remove(self.random.choice(self.members))

    def subscribe(self) -> None:
        if self.members:
            fields: dict[str, object] = {"topics": frozenset(self._some_topics())}
            if self.random.random() < 0.3:
                fields["regex"] = self.random.choice((*REGEXES, ""))
            self._send_heartbeat(self.random.choice(self.members), **fields)

    def change_topics(self) -> None:
        topics, name = self.world.topics, self.random.choice(TOPICS)
        found = topics.get(name)
        if found is None:
            topics.create(name, self.random.randint(1, 6))
        elif self.random.random() < 0.5:
            topics.grow(name, len(found.partitions) + 1)
        else:
            topics.delete(name)

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice((100, 1_000, 11_000, SESSION_MS // 2)))

    def resolve(self) -> None:
        self.world.background.run_all()

    def fail_disk(self) -> None:
        for log in self.world.group_logs:
            log.fail_after = self.random.randint(0, 2)
        for _ in range(3):
            self.beat()
        for log in self.world.group_logs:
            log.fail_after = None

    def restart(self) -> None:
        self.world.background.close()
        self.world.restart()

    def _some_topics(self) -> list[str]:
        return self.random.sample(TOPICS, self.random.randint(0, len(TOPICS)))

    # Invariants

    @property
    def group(self) -> ConsumerGroup | None:
        shard = self.world.groups.shards[self.world.groups.partition_of(GROUP)]
        return shard.state.consumer.get(GROUP)

    def check(self) -> None:
        group = self.group
        if group is None:
            return
        owned: Counter[tuple[UUID, int]] = Counter()
        for member in group.members.values():
            assert member.epoch == AWAY_EPOCH or member.epoch <= group.target_epoch
            for topics in (member.assigned, member.revoking):
                for topic_id, epochs in topics.items():
                    owned.update((topic_id, partition) for partition in epochs)
                    for partition, epoch in epochs.items():
                        assert group.find_owner(topic_id, partition) == member.member_id
                        assert epoch <= max(member.epoch, 0)
        assert not [each for each, count in owned.items() if count > 1], "two owners"
        assert sum(map(len, group.owners.values())) == len(owned)
        assert self._group_epoch <= group.epoch
        assert group.target_epoch <= group.epoch
        self._group_epoch = group.epoch
        self._check_members(group)
        self._check_unchanged_heartbeats(group)

    def _check_members(self, group: ConsumerGroup) -> None:
        used: Counter[tuple[UUID, int]] = Counter()
        for mine in self.members:
            known = group.members.get(mine.member_id)
            if known is None or known.epoch == AWAY_EPOCH:
                continue  # a zombie, not yet fenced
            assert self._epochs.get(mine.member_id, 0) <= known.epoch
            self._epochs[mine.member_id] = known.epoch
            used.update((topic_id, each) for topic_id in mine.has for each in mine.has[topic_id])
        assert not [each for each, count in used.items() if count > 1], "used twice"

    def _check_unchanged_heartbeats(self, group: ConsumerGroup) -> None:
        """Check that heartbeats with nothing new are decided as by the whole decision."""
        shard = next(each for each in self.world.groups.shards if GROUP in each.state.consumer)
        context = self.world.groups.consumer.create_context(shard, group)
        for member in group.members.values():
            said = member.member_id, member.epoch, member.client_id, member.client_host
            command = ConsumerHeartbeat(GROUP, *said, instance_id=self.random.choice((None, "i1")))
            if has_nothing_new(group, command, context.transient_state, context.topics):
                self.unchanged_count += 1
                settings = context.settings
                timing_ms = settings.session_timeout_ms, settings.heartbeat_interval_ms
                quick = decide_unchanged_heartbeat(member.member_id, member.epoch, *timing_ms)
                whole = join_or_stay_in_group(group, command, context)
                assert quick.response == whole.response
                assert (list(quick.records), list(quick.effects)) == ([], list(whole.effects))
                assert not whole.records

    def check_reload(self) -> None:
        for shard, log in zip(self.world.groups.shards, self.world.group_logs, strict=True):
            again = GroupShard("again", log, self.world.clock)
            again.log.replay_log()
            assert again.state == shard.state
            upto = self.random.randint(0, log.end_offset)
            assert compacted(log, upto) == shard.state, f"compacted up to {upto}"

    def calm_down(self) -> None:
        """Stop all faults; let two members go on, change their topics, and one of them leave."""
        self.world.clock.advance(2 * SESSION_MS)
        self.members.clear()
        self.join()
        self.join()
        self.settle()
        topics = self.world.topics
        for name in TOPICS:
            if topics.get(name) is None:
                topics.create(name, 2)
        self.settle()
        for name in TOPICS:
            topics.grow(name, 7)
        self.settle()
        if len(self.members) > 1:
            self.members.pop().leave()
        self.settle()

    def settle(self) -> None:
        for _ in range(30):
            self.world.clock.advance(5_000)
            self.world.background.run_all()
            for member in tuple(self.members):
                try:
                    member.beat()
                except Refused:
                    self._join(member)
        group = group_of(self.world)
        assert group.phase.value == "Stable", group
        assert {m.member_id for m in self.members} == set(group.members)
        wanted = {
            (topic.id, index)
            for topic in self.world.topics
            if any(is_subscribed(member, topic.name) for member in group.members.values())
            for index in range(len(topic.partitions))
        }
        given = {(t, i) for m in self.members for t, indexes in m.has.items() for i in indexes}
        assert given == wanted


def is_subscribed(member: ConsumerGroupMember, topic: str) -> bool:
    return topic in member.topics or bool(member.regex and re.fullmatch(member.regex, topic))


def compacted(log: FakeLog, upto: int) -> GroupShardState:
    """Load a log whose records before `upto` were compacted to the last one of each key."""
    codec = GroupCodec()
    records = [
        (found.offset, found.key, found.value)
        for batch in log.batches()
        for found in batch.iterate_records()
    ]
    last = {key: offset for offset, key, _ in records if offset < upto}
    state = GroupShardState()
    for offset, key, value in records:
        if offset >= upto or last[key] == offset:
            record = codec.decode_record(key, value)
            assert record is not None
            state.apply_record(record, LogRecordOrigin(offset, replaying=True))
    return state


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_has_two_owners_whatever_happens(seed: int) -> None:
    history = History(seed)
    for step in range(STEPS):
        history.step()
        history.check()
        if step % 20 == 0:
            history.check_reload()
    history.check_reload()
    history.calm_down()
    history.check_reload()


def test_a_heartbeat_with_nothing_new_is_found_to_be_one() -> None:
    history = History(0)
    history.join()
    history.settle()
    history.check()
    assert history.unchanged_count == len(history.members) == 1
