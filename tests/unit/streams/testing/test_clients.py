"""The clients in memory, where the driver does not need them: what the runtime's tests rely on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from streams.errors import TaskMigrated
from streams.positions import Committed, Partition
from streams.testing.clients import MemoryConsumer, MemoryProducer
from streams.testing.cluster import Cluster

ONE, TWO = Partition("in", 0), Partition("in", 1)


def cluster_with(topic: str, partitions: int) -> Cluster:
    cluster = Cluster()
    cluster.create(topic, partitions)
    return cluster


def writing(cluster: Cluster) -> MemoryProducer:
    """A producer of the only transactional id, with a record on its way."""
    producer = MemoryProducer(
        "id", cluster, transactional=True, accounts=False, now_ms=lambda: 1, random=Random(0)
    )
    producer.begin()
    producer.produce("in", b"v", b"k", 0)
    return producer


@pytest.mark.parametrize(
    "call",
    [
        MemoryProducer.flush,
        MemoryProducer.end,
        lambda producer: producer.commit([(ONE, Committed(1, ""))], b"group"),
    ],
    ids=["flush", "end", "commit"],
)
def test_a_producer_whose_id_another_has_taken_is_refused(
    call: Callable[[MemoryProducer], None],
) -> None:
    cluster = cluster_with("in", 1)
    fenced = writing(cluster)
    writing(cluster).end()
    with pytest.raises(TaskMigrated, match="newer producer"):
        call(fenced)
    assert len(list(cluster.logs[ONE].read(0))) == 1
    assert cluster.offsets == {}


def test_a_fenced_producer_that_is_closed_leaves_its_successors_transaction_open() -> None:
    cluster = cluster_with("in", 1)
    fenced = writing(cluster)
    fenced.flush()
    successor = writing(cluster)
    successor.flush()
    assert fenced.close()
    assert cluster.logs[ONE].last_stable == 2
    successor.end()
    assert [message.offset() for message in cluster.logs[ONE].read(0)] == [2]


def test_a_paused_partition_is_not_read_and_keeps_its_position() -> None:
    cluster = cluster_with("in", 2)
    consumer = MemoryConsumer(cluster)
    consumer.add({ONE: 0, TWO: 0})
    for partition in (ONE, TWO):
        cluster.append(partition, b"k", b"v", 0)
    consumer.pause(ONE)
    assert [message.partition() for message in consumer.take(10, 0.0)] == [1]
    assert consumer.positions([ONE, TWO]) == {TWO: 1}
    consumer.resume(ONE)
    assert [message.partition() for message in consumer.take(10, 0.0)] == [0]
