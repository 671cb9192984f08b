"""Which offsets may go by OffsetDelete, and which go with their group or topic."""

from __future__ import annotations

from coordinator.errors import Code
from coordinator.offsets.apply import apply
from coordinator.offsets.forget import (
    delete_offsets,
    forget_group,
    forget_some,
    forget_topics,
)
from coordinator.offsets.holding import SIMPLE, Holding
from coordinator.offsets.state import OffsetCommitted, OffsetForgotten, OffsetState
from coordinator.shard.decision import Origin
from tests.unit.coordinator.world import code_of

PRODUCER_ID = 7


def state() -> OffsetState:
    """`words`-0 is committed, `words`-1 pending, `lines`-0 both; another group has one, too."""
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
        apply(made, record, Origin(offset, producer_id))
    return made


def test_what_is_committed_or_pending_is_deleted_and_what_is_not_there_is_fine() -> None:
    asked = [("words", 0), ("lines", 0), ("words", 1), ("words", 2), ("none", 0)]
    decision = delete_offsets(state(), "g", SIMPLE, asked)
    assert decision.response == [Code.NONE] * 5
    assert decision.records == [OffsetForgotten("g", *each) for each in asked[:3]]


def test_a_topic_that_the_group_is_subscribed_to_keeps_its_offsets() -> None:
    reading = Holding(is_empty=False, is_subscribed=lambda topic: topic == "words")
    asked = [("words", 0), ("lines", 0), ("words", 9)]
    decision = delete_offsets(state(), "g", reading, asked)
    subscribed = Code.GROUP_SUBSCRIBED_TO_TOPIC
    assert decision.response == [subscribed, Code.NONE, subscribed]
    assert decision.records == [OffsetForgotten("g", "lines", 0)]


def test_a_group_of_which_nobody_knows_what_it_reads_keeps_all_while_it_has_members() -> None:
    workers = Holding(is_empty=False, lets_delete=False)
    refused = code_of(delete_offsets, state(), "g", workers, [("words", 0)])
    assert refused is Code.NON_EMPTY_GROUP


def test_a_group_takes_its_own_offsets_along_and_a_topic_those_of_all_groups() -> None:
    assert forget_group(state(), "g") == [
        OffsetForgotten("g", "lines", 0),
        OffsetForgotten("g", "words", 0),
        OffsetForgotten("g", "words", 1),
    ]
    assert forget_topics(state(), "g", {"words"}) == [
        OffsetForgotten("g", "words", 0),
        OffsetForgotten("g", "words", 1),
    ]
    assert forget_topics(state(), "other", {"words"}) == [OffsetForgotten("other", "words", 0)]
    assert forget_topics(state(), "none", {"words"}) == []


def test_some_of_a_groups_offsets_are_fewer_than_asked_for_only_if_there_are_no_more() -> None:
    everything = set(forget_group(state(), "g"))
    for count in range(1, 5):
        found = forget_some(state(), "g", count)
        assert len(found) == len(set(found)) == min(count, len(everything))
        assert everything.issuperset(found)
    assert forget_some(state(), "none", 1) == []
