"""Test that a broker deletes consumed records of a repartition topic, never above a kept cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.processes import HANG_LIMIT_S, wait_until

BEYOND = 2**40


class Repartition:
    """Represents the repartition topic of `words`, as its broker and its groups have it."""

    def __init__(self, topics: Topics) -> None:
        self._admin = AdminClient({"bootstrap.servers": topics.servers})
        self._application = topics.application
        name = f"{topics.application}-counts-repartition"
        self._partitions = [TopicPartition(name, number) for number in range(PARTITIONS)]

    def starts(self) -> list[int]:
        """Return the offset where each partition begins."""
        asked = {partition: OffsetSpec.earliest() for partition in self._partitions}
        answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return [answer.result(HANG_LIMIT_S).offset for answer in answers.values()]

    def committed(self) -> list[int]:
        asked = ConsumerGroupTopicPartitions(self._application, self._partitions)
        (answer,) = self._admin.list_consumer_group_offsets([asked]).values()
        return [each.offset for each in answer.result(HANG_LIMIT_S).topic_partitions]

    def keep(self, group: str, offsets: list[int]) -> None:
        cut = [
            TopicPartition(each.topic, each.partition, offset)
            for each, offset in zip(self._partitions, offsets, strict=True)
        ]
        asked = ConsumerGroupTopicPartitions(group, cut)
        (answer,) = self._admin.alter_consumer_group_offsets([asked]).values()
        answer.result(HANG_LIMIT_S)

    def release(self, group: str) -> None:
        (answer,) = self._admin.delete_consumer_groups([group]).values()
        answer.result(HANG_LIMIT_S)


def test_what_was_consumed_is_deleted_and_a_kept_cut_holds_it(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLRACE_REPARTITION_PURGE_INTERVAL_MS", "200")
    worker = new_worker("words")
    worker.start()
    topics.load(1_000)
    topics.wait_for_counts(2 * topics.loaded)
    repartition = Repartition(topics)

    def purge(*, until: Callable[[list[int]], bool]) -> list[int]:
        found: list[int] = []

        def purged() -> bool:
            topics.load(50)  # a purge follows a commit
            found[:] = repartition.starts()
            assert all(s <= c for s, c in zip(found, repartition.committed(), strict=True))
            return until(found)

        wait_until(purged, what=lambda: f"a purge beyond {found}")
        return found

    purge(until=lambda starts: max(starts) > 500)
    cut, group = repartition.committed(), f"{topics.application}-cut-test"
    # Held in one partition, so that the others show that purges go on.
    repartition.keep(group, [cut[0], *[BEYOND] * (PARTITIONS - 1)])

    def above_cut(offsets: list[int]) -> list[bool]:
        return [offset > kept for offset, kept in zip(offsets, cut, strict=True)]

    topics.load(1_000)
    topics.wait_for_counts(2 * topics.loaded)
    assert all(above_cut(repartition.committed()))
    held = purge(until=lambda starts: all(above_cut(starts)[1:]))
    assert held[0] == cut[0]
    repartition.release(group)
    purge(until=lambda starts: all(above_cut(starts)))
    found = topics.wait_for_counts(2 * topics.loaded)
    worker.finish()
    assert found["value"] == topics.loaded
    assert found.total() == 2 * topics.loaded
