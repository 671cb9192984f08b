"""Test that the purge deletes consumed records, but none that a task or a kept cut may need."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.membership.connection import ConnectionLost
from streams.runtime.access.resource_names import is_cut_group
from streams.runtime.threads.repartition_purge import RepartitionPurger
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

TOPIC = "a-r-repartition"
FIRST, SECOND = Partition(TOPIC, 0), Partition(TOPIC, 1)
INPUT = Partition("in", 0)


class World:
    """Holds a purger with an interval of a second, and topics whose partitions begin at 0."""

    def __init__(self) -> None:
        self.kafka = Kafka({"in": 1, TOPIC: 2})
        self.script = Script()
        self.admin = FakeAdmin(self.kafka, self.script)
        self.host = Clock()  # Threads spawned on this host run at once.
        self.cuts: dict[str, dict[Partition, int]] = {}
        self.unlisted: set[str] = set()
        self.purge = RepartitionPurger(
            "a",
            {TOPIC},
            self.admin,
            self._offsets_of,
            check_groups_listed=self._check_listed,
            interval_ms=1_000,
            host=self.host,
        )

    def cut(self, group: str, offsets: dict[Partition, int]) -> None:
        self.admin.group_ids.append(group)
        self.cuts[group] = offsets

    def commit(self, offsets: dict[Partition, int], after_s: float = 1.0) -> dict[Partition, int]:
        """Commit offsets `after_s` later; return the partitions' first offsets after the purge."""
        self.host.elapsed_s += after_s
        self.purge.note_offsets_and_purge_if_due(
            [(p, OffsetAndMetadata(offset, "")) for p, offset in offsets.items()]
        )
        return {partition: log.start_offset for partition, log in self.kafka.logs.items()}

    def _check_listed(self, groups: Sequence[str]) -> None:
        with self.script.call("check_listed"):
            for group in groups:
                if group in self.unlisted:
                    raise AuthorizationError("Describe", "group", group)

    def _offsets_of(self, group: str, asked: Collection[Partition]) -> CommittedOffsets:
        with self.script.call("offsets_of"):
            held = {p: o for p, o in self.cuts[group].items() if p in asked}
            return CommittedOffsets({p: OffsetAndMetadata(o, "") for p, o in held.items()}, [])


def test_what_lies_below_the_committed_offset_is_deleted() -> None:
    world = World()
    assert world.commit({FIRST: 7, SECOND: 0}) == {INPUT: 0, FIRST: 7, SECOND: 0}


def test_topics_that_are_not_the_applications_own_are_never_touched() -> None:
    assert World().commit({INPUT: 9, FIRST: 7})[INPUT] == 0


def test_it_waits_for_its_interval() -> None:
    world = World()
    assert world.commit({FIRST: 7}, after_s=0.9)[FIRST] == 0
    assert world.commit({SECOND: 3}, after_s=0.1) == {INPUT: 0, FIRST: 7, SECOND: 3}
    assert world.commit({FIRST: 9}, after_s=0.9)[FIRST] == 7


def test_what_is_deleted_already_is_not_asked_for_again() -> None:
    world = World()
    world.commit({FIRST: 7})
    world.commit({FIRST: 7})
    assert world.script.calls.count("admin.delete_records") == 1


def test_nothing_is_asked_without_repartition_topics() -> None:
    world = World()
    world.purge = RepartitionPurger(
        "a",
        (),
        world.admin,
        world._offsets_of,
        check_groups_listed=world._check_listed,
        interval_ms=1,
        host=world.host,
    )
    world.commit({INPUT: 7})
    assert world.script.calls == []


def test_nothing_above_a_kept_cut_is_deleted() -> None:
    world = World()
    world.cut("a-cut", {FIRST: 5, SECOND: 90})
    world.cut("a-cut-monday", {FIRST: 6, SECOND: 3})
    assert world.commit({FIRST: 70, SECOND: 80}) == {INPUT: 0, FIRST: 5, SECOND: 3}
    world.admin.group_ids.remove("a-cut")
    assert world.commit({FIRST: 71, SECOND: 81}) == {INPUT: 0, FIRST: 6, SECOND: 3}
    world.admin.group_ids.clear()
    assert world.commit({FIRST: 72, SECOND: 82}) == {INPUT: 0, FIRST: 72, SECOND: 82}


def test_a_partition_that_a_kept_cut_does_not_name_is_kept_whole() -> None:
    world = World()
    world.cut("a-cut", {SECOND: 3})
    assert world.commit({FIRST: 70, SECOND: 80}) == {INPUT: 0, FIRST: 0, SECOND: 3}


@pytest.mark.parametrize(
    "call", ["check_listed", "admin.list_groups", "offsets_of", "admin.delete_records"]
)
@pytest.mark.parametrize("error", [OutcomeUnknown("?"), ConnectionLost("gone")])
def test_a_failure_deletes_nothing_and_is_made_good_later(call: str, error: Exception) -> None:
    world = World()
    world.cut("a-cut", {FIRST: 5, SECOND: 5})
    world.script.fail(call, error)
    assert world.commit({FIRST: 70})[FIRST] == 0
    assert world.commit({FIRST: 71})[FIRST] == 5


@pytest.mark.parametrize(
    ("group", "kept"),
    [
        *[("a-cut", True), ("a-cut-", True), ("a-cut-2026", True)],
        *[("a", False), ("a-cutter", False), ("b-cut", False), ("a-b-cut", False)],
    ],
)
def test_a_kept_cut_is_told_by_its_groups_name(group: str, kept: bool) -> None:
    assert is_cut_group(group, "a") == kept


@pytest.mark.parametrize("group", ["a-cut", "a-cut-"])
def test_nothing_is_deleted_while_a_group_of_a_cut_may_not_be_listed(group: str) -> None:
    world = World()
    world.unlisted.add(group)
    assert world.commit({FIRST: 7})[FIRST] == 0
    assert "admin.delete_records" not in world.script.calls


def test_a_purge_that_is_not_allowed_fails_the_next_commit_and_another_error_does_not() -> None:
    world = World()
    world.script.fail("admin.delete_records", OutcomeUnknown("no answer"))
    world.script.fail("admin.delete_records", AuthorizationError("Delete", "topic", TOPIC), at=2)
    assert world.commit({FIRST: 7})[FIRST] == 0
    assert world.commit({FIRST: 8})[FIRST] == 0
    with pytest.raises(AuthorizationError, match=f"not allowed to Delete topic '{TOPIC}'"):
        world.commit({FIRST: 9}, after_s=0.0)
