"""Test that positions which no record has moved are committed, on both brokers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")


def list_lags(topics: Topics) -> list[int]:
    """Return how far the committed offset of each input partition is from its end."""
    reader = Consumer({"bootstrap.servers": topics.servers, "group.id": topics.application})
    try:
        asked = [TopicPartition(topics.source, number) for number in range(PARTITIONS)]
        committed = [each.offset for each in reader.committed(asked, HANG_LIMIT_S)]
        ends = [reader.get_watermark_offsets(each, HANG_LIMIT_S)[1] for each in asked]
    finally:
        reader.close()
    return [end - offset for end, offset in zip(ends, committed, strict=True)]


def has_copied(topics: Topics, count: int) -> bool:
    """Return whether the output has as many committed records."""
    return len(list(topics.committed())) == count


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_markers_and_aborted_records_at_the_end_of_an_input_leave_no_lag(
    topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    writer = Producer({"bootstrap.servers": topics.servers, "transactional.id": topics.source})
    writer.init_transactions(HANG_LIMIT_S)
    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="copy",
        bootstrap_servers=topics.servers,
        state_dir=tmp_path / "state",
        processing_guarantee=guarantee,
    )
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        for end in (writer.commit_transaction, writer.abort_transaction):
            writer.begin_transaction()
            for number in range(PARTITIONS):
                writer.produce(topics.source, "x", "k", partition=number)
            end(HANG_LIMIT_S)
        wait_until(lambda: not any(list_lags(topics)), what="a lag of 0 in each partition")
    assert len(list(topics.committed())) == PARTITIONS


def test_latest_goes_on_in_empty_partitions_where_it_began(topics: Topics, tmp_path: Path) -> None:
    for run in range(2):
        app = build(
            topics.application,
            topics.source,
            topics.target,
            kind="copy",
            bootstrap_servers=topics.servers,
            state_dir=tmp_path / f"machine {run}",
            auto_offset_reset="latest",
        )
        with app.start() as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
            wait_until(partial(has_copied, topics, 30 * run), what="the copies")
        topics.load(30)
