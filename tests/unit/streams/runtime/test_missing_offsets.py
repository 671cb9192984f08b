"""Test that a refusal for missing offsets names only reasons that can be, the likeliest first."""

from __future__ import annotations

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.offsets.offset_refusals import (
    describe_missing_offsets,
    find_remaining_offsets,
    suggest_ways_out,
)

LOST = Partition("in", 0)
EXPIRED, MADE_AGAIN = "offsets.retention.minutes", "was deleted and created again"
OWN = OffsetAndMetadata(3, encode_metadata({}))
NAMING_THE_ID = OffsetAndMetadata(3, encode_metadata({}, topic_ids={"in": 17}))
OF_A_TOOL = OffsetAndMetadata(3, "")


@pytest.mark.parametrize("committed", [{}, None], ids=["the group is empty", "nothing is known"])
def test_where_all_may_have_expired_that_is_named_first(
    committed: dict[Partition, OffsetAndMetadata] | None,
) -> None:
    left = None if committed is None else find_remaining_offsets([LOST], committed)
    problem = describe_missing_offsets("a", [LOST], left)
    assert 0 < problem.index(EXPIRED) < problem.index(MADE_AGAIN)
    ways_out = suggest_ways_out([LOST], (), left)
    assert ways_out.startswith("With a ledger")
    assert 0 < ways_out.index("group reset") < ways_out.index("--made-again in")


@pytest.mark.parametrize("other", [OWN, OF_A_TOOL])
def test_a_group_that_has_offsets_of_other_topics_has_not_expired(other: OffsetAndMetadata) -> None:
    left = find_remaining_offsets(
        [LOST], {Partition("more", 0): other, Partition("in", 1): OF_A_TOOL}
    )
    problem = describe_missing_offsets("a", [LOST], left)
    assert EXPIRED not in problem
    assert MADE_AGAIN in problem
    assert suggest_ways_out([LOST], (), left).startswith("If 'in' was made again, ")


@pytest.mark.parametrize(
    ("beside", "held"),
    [(Partition("in", 1), OWN), (Partition("more", 0), NAMING_THE_ID)],
    ids=["another partition of the topic", "an offset that names its id"],
)
def test_a_topic_that_is_the_one_of_before_was_not_made_again(
    beside: Partition, held: OffsetAndMetadata
) -> None:
    left = find_remaining_offsets([LOST], {beside: held})
    problem = describe_missing_offsets("a", [LOST], left)
    assert "a tool has deleted them" in problem
    assert MADE_AGAIN not in problem
    assert "--made-again" not in suggest_ways_out([LOST], (), left)
    assert "--made-again other" in suggest_ways_out([LOST, Partition("other", 0)], (), left)


def test_an_offset_of_another_task_does_not_tell_of_which_topic_the_lost_one_is() -> None:
    left = find_remaining_offsets([LOST], {Partition("more", 1): NAMING_THE_ID})
    assert MADE_AGAIN in describe_missing_offsets("a", [LOST], left)
