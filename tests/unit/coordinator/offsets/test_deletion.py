"""Test which offsets OffsetDelete may delete, and which are deleted with a group or topic."""

from __future__ import annotations

from coordinator.errors import Code
from coordinator.offsets.apply import apply_record
from coordinator.offsets.deletion import (
    build_group_offset_tombstones,
    build_offset_tombstones_up_to,
    build_topic_offset_tombstones,
    decide_offset_deletion,
)
from coordinator.offsets.policy import SIMPLE_GROUP_POLICY, GroupOffsetPolicy
from coordinator.offsets.state import OffsetCommitted, OffsetForgotten, OffsetState
from coordinator.shard.decision import LogRecordOrigin
from tests.unit.coordinator.world import code_of

PRODUCER_ID = 7


def state() -> OffsetState:
    """Return a state: `words`-0 committed, `words`-1 pending, `lines`-0 both, and another group."""
    made = OffsetState()
    for offset, (group_id, topic, partition, producer_id) in enumerate(
        [
            ("g", "words", 0, -1),
            ("g", "words", 1, PRODUCER_ID),
            ("g", "lines", 0, -1),
            ("g", "lines", 0, PRODUCER_ID),
            ("other", "words", 0, -1),
        ]
    ):
        record = OffsetCommitted(group_id, topic, partition, 42, -1, "", 0)
        apply_record(made, record, LogRecordOrigin(offset, producer_id))
    return made


def test_what_is_committed_or_pending_is_deleted_and_what_is_not_there_is_fine() -> None:
    asked = [("words", 0), ("lines", 0), ("words", 1), ("words", 2), ("none", 0)]
    decision = decide_offset_deletion(state(), "g", SIMPLE_GROUP_POLICY, asked)
    assert decision.response == [Code.NONE] * 5
    assert decision.records == [OffsetForgotten("g", *each) for each in asked[:3]]


def test_a_topic_that_the_group_is_subscribed_to_keeps_its_offsets() -> None:
    reading = GroupOffsetPolicy(is_empty=False, is_subscribed=lambda topic: topic == "words")
    asked = [("words", 0), ("lines", 0), ("words", 9)]
    decision = decide_offset_deletion(state(), "g", reading, asked)
    subscribed = Code.GROUP_SUBSCRIBED_TO_TOPIC
    assert decision.response == [subscribed, Code.NONE, subscribed]
    assert decision.records == [OffsetForgotten("g", "lines", 0)]


def test_a_group_of_which_nobody_knows_what_it_reads_keeps_all_while_it_has_members() -> None:
    workers = GroupOffsetPolicy(is_empty=False, allows_deletion=False)
    refused = code_of(decide_offset_deletion, state(), "g", workers, [("words", 0)])
    assert refused is Code.NON_EMPTY_GROUP


def test_a_group_takes_its_own_offsets_along_and_a_topic_those_of_all_groups() -> None:
    assert build_group_offset_tombstones(state(), "g") == [
        OffsetForgotten("g", "lines", 0),
        OffsetForgotten("g", "words", 0),
        OffsetForgotten("g", "words", 1),
    ]
    assert build_topic_offset_tombstones(state(), "g", {"words"}) == [
        OffsetForgotten("g", "words", 0),
        OffsetForgotten("g", "words", 1),
    ]
    assert build_topic_offset_tombstones(state(), "other", {"words"}) == [
        OffsetForgotten("other", "words", 0)
    ]
    assert build_topic_offset_tombstones(state(), "none", {"words"}) == []


def test_some_of_a_groups_offsets_are_fewer_than_asked_for_only_if_there_are_no_more() -> None:
    everything = set(build_group_offset_tombstones(state(), "g"))
    for count in range(1, 5):
        found = build_offset_tombstones_up_to(state(), "g", count)
        assert len(found) == len(set(found)) == min(count, len(everything))
        assert everything.issuperset(found)
    assert build_offset_tombstones_up_to(state(), "none", 1) == []
