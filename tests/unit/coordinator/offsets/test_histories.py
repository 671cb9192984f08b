"""Test offsets in random histories against a plain model, live and after a reload.

Commits, transactions of several producers, deleted offsets, groups and topics, time that passes,
appends that fail and restarts, in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from coordinator.errors import Code
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.offsets.config import OffsetConfig
from coordinator.offsets.state import OffsetState
from coordinator.shard.decision import TransactionalProducer, TransactionEnded
from coordinator.shard.slices import run_to_completion
from tests.unit.coordinator.world import World, code_of

GROUPS = ("counts", "others", "sums")
TOPICS = ("words", "lines")
PARTITIONS = 2
PRODUCERS = (7, 8)
RETENTION_MS, CHECK_MS = 50_000, 10_000


class Key(NamedTuple):
    group_id: str
    topic: str
    partition: int


@dataclass
class Kept:
    """Holds an offset and, as `free_ms`, since when only its age keeps it from expiring."""

    offset: int
    commit_ms: int
    free_ms: int = 0


@dataclass
class Model:
    """Models the expected offsets, which only grow, so that the newer one is the larger one."""

    committed: dict[Key, Kept] = field(default_factory=dict)
    pending: dict[int, dict[Key, Kept]] = field(
        default_factory=lambda: {producer_id: {} for producer_id in PRODUCERS}
    )

    def end(self, producer_id: int, committed: bool, groups: set[str], now_ms: int) -> None:
        held = self.pending[producer_id]
        for key in [key for key in held if key.group_id in groups]:
            kept, before = held.pop(key), self.committed.get(key)
            if committed and (before is None or before.offset < kept.offset):
                self.committed[key] = kept
            if key in self.committed:
                self.committed[key].free_ms = now_ms

    def forget(self, goes: Callable[[Key], bool]) -> None:
        for found in (self.committed, *self.pending.values()):
            for key in [key for key in found if goes(key)]:
                del found[key]

    def is_held(self, key: Key) -> bool:
        return any(key in found for found in self.pending.values())


class History:
    """Represents a world, its model, and the steps that may happen to both."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        config = OffsetConfig(retention_ms=RETENTION_MS, retention_check_interval_ms=CHECK_MS)
        self.world = World(offset_config=config)
        self.model = Model()
        self.offset = 0
        self.started_ms = self.world.clock.now_ms()
        self.actions = {
            self.commit: 6,
            self.stage: 6,
            self.end: 4,
            self.delete_offset: 2,
            self.delete_group: 1,
            self.delete_topic: 1,
            self.pass_time: 3,
            self.restart: 1,
        }

    def step(self) -> None:
        [action] = self.rng.choices(list(self.actions), list(self.actions.values()))
        fails = action in (self.commit, self.stage, self.end, self.delete_offset, self.delete_group)
        for log in self.world.group_logs:
            log.fail_after = 0 if fails and self.rng.random() < 0.1 else None
        code = code_of(action)
        assert code in (Code.NONE, Code.KAFKA_STORAGE_ERROR, Code.GROUP_ID_NOT_FOUND)
        for log in self.world.group_logs:
            log.fail_after = None

    def key(self) -> Key:
        rng = self.rng
        return Key(rng.choice(GROUPS), rng.choice(TOPICS), rng.randrange(PARTITIONS))

    def offer(self, found: dict[Key, Kept], producer: TransactionalProducer | None) -> None:
        """Commit the next offset, in a transaction or not, and record it in the model."""
        key = self.key()
        self.offset += 1
        offsets = [OffsetToCommit(key.topic, key.partition, self.offset)]
        self.world.groups.offsets.commit_offsets(
            OffsetCommitCommand(key.group_id, offsets, producer),
            CommittingMember(),
            unknown_group_code=Code.NONE,
        )
        found[key] = Kept(self.offset, self.world.clock.now_ms())

    def commit(self) -> None:
        self.offer(self.model.committed, None)

    def stage(self) -> None:
        producer_id = self.rng.choice(PRODUCERS)
        self.offer(self.model.pending[producer_id], TransactionalProducer(producer_id, 0))

    def end(self) -> None:
        """Write the marker in each shard, unless the first write fails."""
        producer_id, committed = self.rng.choice(PRODUCERS), self.rng.random() < 0.6
        groups = self.world.groups
        for index in range(len(groups.shards)):
            groups.offsets.end_transaction(index, TransactionEnded(producer_id, 0, committed))
            there = {group_id for group_id in GROUPS if groups.partition_of(group_id) == index}
            self.model.end(producer_id, committed, there, self.world.clock.now_ms())

    def delete_offset(self) -> None:
        key = self.key()
        [code] = run_to_completion(
            self.world.groups.offsets.delete_offsets_in_slices(
                key.group_id, [(key.topic, key.partition)]
            )
        )
        assert code is Code.NONE
        self.model.forget(lambda found: found == key)

    def delete_group(self) -> None:
        group_id = self.rng.choice(GROUPS)
        self.world.delete_group(group_id)
        self.model.forget(lambda found: found.group_id == group_id)
        again = code_of(self.world.delete_group, group_id)
        assert again is Code.GROUP_ID_NOT_FOUND

    def delete_topic(self) -> None:
        topic = self.rng.choice(TOPICS)
        self.world.forget_topic(topic)
        self.model.forget(lambda found: found.topic == topic)

    def pass_time(self) -> None:
        """Let time pass and check that exactly the offsets that are old enough have expired."""
        clock = self.world.clock
        clock.advance(self.rng.randrange(2 * CHECK_MS))
        kept, now_ms = committed(self.world), clock.now_ms()
        for key, known in list(self.model.committed.items()):
            age_ms = now_ms - known.commit_ms
            if key not in kept:
                assert age_ms >= RETENTION_MS, f"{key} was {age_ms} ms old"
                assert not self.model.is_held(key), f"{key} is held"
                del self.model.committed[key]
                continue
            due_ms = max(known.commit_ms + RETENTION_MS, known.free_ms, self.started_ms)
            if not self.model.is_held(key):
                assert now_ms - due_ms < CHECK_MS, f"{key} was due {now_ms - due_ms} ms ago"

    def restart(self) -> None:
        before = [deepcopy(shard.state.offsets) for shard in self.world.groups.shards]
        self.world.restart()
        assert [shard.state.offsets for shard in self.world.groups.shards] == before
        self.started_ms = self.world.clock.now_ms()


def committed(world: World) -> dict[Key, int]:
    return {
        Key(group_id, *partition): kept.offset
        for shard in world.groups.shards
        for group_id, group in shard.state.offsets.committed.items()
        for partition, kept in group.items()
    }


def check_holders(state: OffsetState) -> None:
    """Check that the index of pending offsets agrees with the state."""
    expected: dict[str, dict[tuple[str, int], set[int]]] = {}
    for producer_id, held in state.pending.items():
        for group_id, topic, partition in held:
            group = expected.setdefault(group_id, {})
            group.setdefault((topic, partition), set()).add(producer_id)
    assert state.pending_producers == expected
    assert state.groups >= state.committed.keys() | state.pending_producers.keys()


@pytest.mark.parametrize("seed", range(20))
def test_offsets_are_what_a_plain_model_says_after_any_history(seed: int) -> None:
    history = History(seed)
    for step in range(250):
        history.step()
        world, model = history.world, history.model
        where = f"{seed=} {step=}"
        assert committed(world) == {key: kept.offset for key, kept in model.committed.items()}, (
            where
        )
        pending: dict[int, dict[Key, int]] = {producer_id: {} for producer_id in PRODUCERS}
        for shard in world.groups.shards:
            check_holders(shard.state.offsets)
            for producer_id, held in shard.state.offsets.pending.items():
                pending[producer_id] |= {Key(*key): kept.offset for key, kept in held.items()}
        assert pending == {
            producer_id: {key: kept.offset for key, kept in held.items()}
            for producer_id, held in model.pending.items()
        }, where
    history.restart()
