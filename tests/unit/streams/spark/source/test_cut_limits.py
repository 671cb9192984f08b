"""Test that a read with a cut takes offsets up to its ends, without the runs beyond the cut."""

from __future__ import annotations

from typing import Any, cast

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import WrittenRange
from streams.runtime.clients import Admin
from streams.spark.cuts.cut import Cut
from streams.spark.source.options import IsolationLevel, TopicReadLimits
from streams.spark.source.range_planning import plan_offset_ranges

FIRST, SECOND = Partition("out", 0), Partition("out", 1)


class Topics:
    """Stands in for an admin client whose topic has two partitions with offsets 10 to 99."""

    def fetch_partition_counts_at_start(self, timeout_s: float) -> dict[str, int]:
        return {"out": 2}

    def fetch_earliest_offsets(self, partitions: list[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 10)

    def fetch_topic_settings(self, topics: list[str]) -> dict[str, dict[str, str]]:
        return {topic: {"cleanup.policy": "delete", "retention.ms": "1000"} for topic in topics}

    def fetch_last_stable_offsets(self, partitions: list[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 100)


def read(cut: Cut, **limits: Any) -> list[str]:
    admin = cast(Admin, Topics())
    found = plan_offset_ranges(
        admin, "out", TopicReadLimits(cut=cut, **limits), IsolationLevel.READ_COMMITTED
    )
    return [str(each) for each in found]


def cut_of(first: int, second: int, **more: Any) -> Cut:
    return Cut(
        application_id="a",
        taken_ms=0,
        offsets={},
        ends={FIRST: first, SECOND: second},
        **more,
    )


def test_runs_that_are_beyond_the_cut_are_left_out() -> None:
    beyond = {
        FIRST: (WrittenRange(3, 12), WrittenRange(20, 20), WrittenRange(40, 45)),
        SECOND: (WrittenRange(69, 69),),
    }
    cut = cut_of(50, 70, beyond=beyond)
    assert read(cut) == [
        "out[0] 13..20",
        "out[0] 21..40",
        "out[0] 46..50",
        "out[1] 10..69",
        "out[1] 70..70",
    ]
    assert read(cut, offsets_to={0: 30, 1: 11}) == [
        "out[0] 13..20",
        "out[0] 21..30",
        "out[1] 10..11",
    ]


def test_a_partition_of_which_nothing_is_in_the_cut_is_empty_wherever_it_begins() -> None:
    assert read(cut_of(0, 20)) == ["out[0] 10..10", "out[1] 10..20"]
    with pytest.raises(ConfigError, match=r"the cut names out\[0\] up to offset 5, and there are"):
        read(cut_of(5, 20))
