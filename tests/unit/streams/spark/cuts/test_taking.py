"""Test that a cut without a ledger has the ends of outputs only if no task committed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.spark.cuts.application_topics import ApplicationTopics
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.taking import _add_ends_if_idle

IN, OUT = Partition("in", 0), Partition("out", 0)
SHAPE = ApplicationTopics(
    application_id="app", sources=frozenset({"in"}), outputs=frozenset({"out"})
)


def committed(number: int | None) -> CommittedOffsets:
    """Return the committed offset of a task that has read five records and now only punctuates."""
    return CommittedOffsets({IN: OffsetAndMetadata(5, encode_metadata({}, 7, None, number))}, [])


class FakeCluster:
    """Stands in for a cluster with ends of outputs and committed offsets for a second look."""

    def __init__(self, found: CommittedOffsets) -> None:
        self._found = found

    def list_partitions(self, topics: Iterable[str]) -> list[Partition]:
        return [Partition(topic, 0) for topic in topics]

    def fetch_ends_and_await_transactions(
        self, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 9)

    def fetch_last_stable_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 5)

    def fetch_committed_offsets(
        self, group: str, partitions: Iterable[Partition]
    ) -> CommittedOffsets:
        return self._found


@pytest.mark.parametrize(
    ("second", "ends"), [(committed(3), {OUT: 9}), (committed(4), None), (committed(None), None)]
)
def test_ends_are_told_where_no_task_has_committed_meanwhile(
    second: CommittedOffsets, ends: Any
) -> None:
    cluster: Any = FakeCluster(second)
    cut = Cut(application_id="app", taken_ms=0, offsets={IN: 5})
    assert _add_ends_if_idle(cluster, cut, SHAPE, committed(3)).ends == ends
