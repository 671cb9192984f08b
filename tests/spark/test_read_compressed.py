"""Test compressed, large, empty and null records, read in splits of one offset."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import IsolationLevel, TopicReadLimits
from streams.spark.source.range_planning import plan_offset_ranges
from streams.spark.source.ranges import split_ranges
from tests.brokers import Broker
from tests.spark.topics import Written

LARGE = 5_000_000
"""Bytes: more than a fetch asks of a partition."""


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_records_of_any_codec_and_size(
    broker: Broker, unique: Callable[[str], str], codec: str
) -> None:
    written = Written(
        broker.bootstrap_servers,
        unique(codec),
        configs={"max.message.bytes": str(2 * LARGE)},
        settings={"compression.type": codec, "message.max.bytes": 2 * LARGE},
    )
    large = random.Random(1).randbytes(LARGE)
    written.transaction([(0, None, None), (0, b"", b""), (0, b"k", large), (0, b"k", b"x" * 50)])
    written.transaction([(0, b"a", b"no")], commit=False)
    access, committed = BrokerAccess(broker.bootstrap_servers), IsolationLevel.READ_COMMITTED
    ranges = plan_offset_ranges(access.create_admin(), written.topic, TopicReadLimits(), committed)
    found = [
        (offset, key, value)
        for each in split_ranges(ranges, 1)
        for raw in fetch_batches(access, committed, each)
        for offset, key, value in zip(raw.offsets, raw.keys, raw.values, strict=True)
    ]
    assert found == [(r.offset, r.key, r.value) for r in written.committed]
