"""Plant errors at the end, one after the other, to see that they are found and named.

Each is planted while no worker runs, where only those planted before differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams import serdes
from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.spark import read_cut
from streams.spark.reconciliation.report import Report
from tests.changelog_offsets import account_for_state
from tests.reading import records
from tests.spark_soak.fire import Fire
from tests.spark_soak.topology import CHANGELOG, COPIED, EVENTS, KEYS, PARTITIONS, app

_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Planted:
    """Says what was done, which key differs in which account, and which record it is about."""

    what: str
    account: str
    key: str
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        where = f"{self.topic}[{self.partition}] offset {self.offset}"
        return f"{self.what}: {self.key} at {where}"

    def is_named(self, report: Report) -> bool:
        """Tell whether the report has it: the account, the key, and the record itself."""
        rows = report.off.where(F.col("account") == self.account).where(F.col("key") == self.key)
        place = (self.topic, self.partition, self.offset)
        return any(
            (at.topic, at.partition, at.offset) == place
            for row in rows.collect()
            for at in row.offsets
        )


def changed_in_a_changelog(fire: Fire) -> Planted:
    """Overwrite a count of one key in the changelog.

    The next commit goes beyond it, with a record of another key; the worker has restored the wrong
    count meanwhile, as it would after any damage of a changelog.
    """
    key, other = _keys_of_one_partition()
    value = serdes.int64.serialize(123_456_789)
    partition, offset = _produce(fire, CHANGELOG, key, value, _partition(key))
    account_for_state(fire.servers, app.topology())
    fire.load.write(other)
    fire.process()
    return Planted("one record changed in a changelog", "counts", key, CHANGELOG, partition, offset)


def doubled_in_an_output(fire: Fire) -> Planted:
    """Write the last copy of a partition once more, as it is."""
    cut = read_cut(app)
    assert cut.ends is not None
    end = cut.ends[Partition(COPIED, 0)]
    *_, last = records(fire.servers, COPIED, [0], first={0: max(0, end - 1_000)})
    at_ms = last.timestamp()[1]
    partition, offset = _produce(fire, COPIED, last.key().decode(), last.value(), 0, at_ms)
    return Planted("one output doubled", COPIED, last.key().decode(), COPIED, partition, offset)


def skipped_in_the_input(fire: Fire) -> Planted:
    """Write one record with a key of its own, and set the group's offset beyond it."""
    key = f"key-{KEYS}"
    fire.load.write(key)
    admin = AdminClient({"bootstrap.servers": fire.servers})
    place = TopicPartition(EVENTS, _partition(key))
    group = app.application_id
    request = [ConsumerGroupTopicPartitions(group, [place])]
    found = admin.list_consumer_group_offsets(request)[group].result(_WAIT_S).topic_partitions[0]
    beyond = TopicPartition(found.topic, found.partition, found.offset + 1, found.metadata)
    request = [ConsumerGroupTopicPartitions(group, [beyond])]
    admin.alter_consumer_group_offsets(request)[group].result(_WAIT_S)
    return Planted("one offset skipped", COPIED, key, EVENTS, found.partition, found.offset)


ALL = (changed_in_a_changelog, doubled_in_an_output, skipped_in_the_input)


def _partition(key: str) -> int:
    return partition_for_key(key.encode(), PARTITIONS)


def _keys_of_one_partition() -> tuple[str, str]:
    key = "key-0"
    others = (f"key-{number}" for number in range(1, KEYS))
    return key, next(other for other in others if _partition(other) == _partition(key))


def _produce(
    fire: Fire, topic: str, key: str, value: bytes, partition: int, at_ms: int = 0
) -> tuple[int, int]:
    """Write a record outside of any transaction; return its partition and offset."""
    places: list[tuple[int, int]] = []

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        places.append((message.partition(), message.offset()))  # type: ignore[attr-defined]

    producer = Producer({"bootstrap.servers": fire.servers})
    producer.produce(topic, value, key, partition, delivered, at_ms)
    assert producer.flush(_WAIT_S) == 0
    return places[0]
