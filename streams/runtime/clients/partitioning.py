"""Kafka's own choice of a partition, for records whose partition is not chosen by their own key."""

from __future__ import annotations

from confluent_kafka import murmur2


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of `partitions` that Kafka's producers write a record with this key to."""
    partition: int = murmur2(key, partitions)
    return partition
