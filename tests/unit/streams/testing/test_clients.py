"""Test behaviour of the in-memory clients that the runtime's tests need and the driver doesn't."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import TaskMigrated
from streams.testing.clients import InMemoryConsumer, InMemoryProducer
from streams.testing.cluster import InMemoryCluster

ONE, TWO = Partition("in", 0), Partition("in", 1)


def cluster_with(topic: str, partitions: int) -> InMemoryCluster:
    cluster = InMemoryCluster()
    cluster.create_topic(topic, partitions)
    return cluster


def writing(cluster: InMemoryCluster) -> InMemoryProducer:
    """Return a transactional producer whose open transaction has one record."""
    producer = InMemoryProducer(
        "id",
        cluster,
        transactional=True,
        reports_deliveries=False,
        now_ms=lambda: 1,
        random=Random(0),
    )
    producer.begin_transaction()
    producer.produce("in", b"v", b"k", 0)
    return producer


@pytest.mark.parametrize(
    "call",
    [
        InMemoryProducer.flush,
        InMemoryProducer.commit_transaction,
        lambda producer: producer.send_offsets_to_transaction(
            [(ONE, OffsetAndMetadata(1, ""))], b"group"
        ),
    ],
    ids=["flush", "end", "commit"],
)
def test_a_producer_whose_id_another_has_taken_is_refused(
    call: Callable[[InMemoryProducer], None],
) -> None:
    cluster = cluster_with("in", 1)
    fenced = writing(cluster)
    writing(cluster).commit_transaction()
    with pytest.raises(TaskMigrated, match="newer producer"):
        call(fenced)
    assert len(list(cluster.logs[ONE].read_committed(0))) == 1
    assert cluster.committed_offsets == {}


def test_a_fenced_producer_that_is_closed_leaves_its_successors_transaction_open() -> None:
    cluster = cluster_with("in", 1)
    fenced = writing(cluster)
    fenced.flush()
    successor = writing(cluster)
    successor.flush()
    assert fenced.try_abort_and_close()
    assert cluster.logs[ONE].last_stable_offset == 2
    successor.commit_transaction()
    assert [message.offset() for message in cluster.logs[ONE].read_committed(0)] == [2]


def test_a_paused_partition_is_not_read_and_keeps_its_position() -> None:
    cluster = cluster_with("in", 2)
    consumer = InMemoryConsumer(cluster)
    consumer.add_partitions({ONE: 0, TWO: 0})
    for partition in (ONE, TWO):
        cluster.append_record(partition, b"k", b"v", 0)
    consumer.pause_partition(ONE)
    assert [message.partition() for message in consumer.poll_records(10, 0.0)] == [1]
    assert consumer.next_offsets([ONE, TWO]) == {TWO: 1}
    consumer.resume_partition(ONE)
    assert [message.partition() for message in consumer.poll_records(10, 0.0)] == [0]
