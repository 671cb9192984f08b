"""Test that unread records of a repartition topic which a former version has left are told of."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.settings.config import StreamsConfig
from streams.testing.clients import InMemoryConsumer
from streams.testing.cluster import InMemoryTransaction
from streams.testing.simulated_host import SimulatedHost
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import build_counting_topology

LEFT = Partition("a-old-repartition", 1)
TOPICS = {"in": 1, "out": 1, LEFT.topic: 2}


class Leading:
    """Holds the assignor of a group's leader, and a cluster with a topic of a former version."""

    def __init__(self, state_dir: Path, committed: dict[Partition, int]) -> None:
        self.kafka = Kafka(TOPICS)
        self.admin = FakeAdmin(self.kafka, Script())
        self.committed = {p: OffsetAndMetadata(each, "") for p, each in committed.items()}
        self.planner = StreamsPartitionAssignor(
            build_counting_topology("c"),
            StreamsConfig(state_dir=state_dir),
            self.admin,
            lambda _: CommittedOffsets(self.committed, []),
            search=CommittedRecordSearch(
                self.admin, partial(InMemoryConsumer, self.kafka), SimulatedHost(0)
            ),
        )

    def plan(self) -> None:
        self.planner.assign_group({"m": SubscriptionInfo((), topology=self.planner.declared)})


@pytest.mark.parametrize("committed", [{}, {LEFT: 1}], ids=["never read", "read in part"])
def test_records_that_nobody_reads_any_more_are_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, committed: dict[Partition, int]
) -> None:
    leading = Leading(tmp_path, committed)
    leading.kafka.load(LEFT, ("k", "1"), ("k", "2"))
    leading.plan()
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "repartition topic 'a-old-repartition' has records of a former version" in told
    caplog.clear()
    leading.plan()
    assert not caplog.records


def test_nothing_is_told_where_all_was_read_or_only_markers_are_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leading = Leading(tmp_path, {LEFT: 2})
    leading.kafka.load(LEFT, ("k", "1"), ("k", "2"))
    transaction = InMemoryTransaction(written={LEFT: None})
    leading.kafka.open_transactions["former"] = transaction
    leading.kafka.end_transaction(transaction, committed=True)
    assert leading.kafka.logs[LEFT].high_watermark == 3
    leading.plan()
    assert not caplog.records


def test_topics_of_an_application_whose_id_begins_alike_are_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leading = Leading(tmp_path, {})
    leading.kafka.load(LEFT, ("k", "1"))
    leading.admin.group_ids.append("a-old")
    leading.plan()
    assert not caplog.records


def test_where_no_broker_tells_the_next_assignment_looks_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leading = Leading(tmp_path, {})
    leading.kafka.load(LEFT, ("k", "1"))
    leading.admin.script.fail("admin.list_groups", OutcomeUnknown("loading"))
    leading.plan()
    assert "has records of a former version" not in caplog.text
    leading.plan()
    assert "has records of a former version" in caplog.text


def test_a_topic_that_takes_long_keeps_nothing_from_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its search finds nothing within its time at any look; the group is not kept for ever."""
    leading = Leading(tmp_path, {})
    slow = Partition("a-a-repartition", 0)
    leading.kafka.create_topic(slow.topic, 1)
    leading.kafka.load(LEFT, ("k", "1"))
    searched: list[str] = []

    def probe(
        _: CommittedRecordSearch, partitions: list[Partition], offsets: dict[Partition, int]
    ) -> bool | None:
        searched.append(partitions[0].topic)
        return None if partitions[0].topic == slow.topic else True

    monkeypatch.setattr(CommittedRecordSearch, "probe_for_committed_record", probe)
    caplog.set_level("INFO")
    for _ in range(8):
        leading.plan()
    assert searched == [slow.topic, LEFT.topic, *[slow.topic] * 4]
    assert "repartition topic 'a-old-repartition' has records" in caplog.text
    assert f"not known whether '{slow.topic}' has unread records" in caplog.text
