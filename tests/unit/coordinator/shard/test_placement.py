"""Test that a group or transactional id belongs to the partition that Kafka would choose."""

from __future__ import annotations

import pytest

from coordinator.shard.placement import partition_for


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("counts", 48),
        ("grüße-😀", 27),  # hashed by UTF-16 code units
        ("polygenelubricants", 0),  # its hash is the int without an absolute value
        ("", 0),
    ],
)
def test_a_name_lives_in_the_partition_that_kafka_computes(name: str, partition: int) -> None:
    assert partition_for(name, 50) == partition
