"""Choose partitions as Kafka's producers do, for records that are placed by another key."""

from __future__ import annotations

from confluent_kafka import murmur2


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition to which Kafka's producers write a record with this key."""
    partition: int = murmur2(key, partition_count)
    return partition
