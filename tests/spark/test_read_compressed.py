"""What producers compress, large records, empty and null ones: read in splits of one offset."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from streams.spark.source.access import Access
from streams.spark.source.fetching import fetch
from streams.spark.source.limits import ranges_of
from streams.spark.source.options import Isolation, Limits
from streams.spark.source.ranges import split
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
    access, committed = Access(broker.bootstrap_servers), Isolation.READ_COMMITTED
    ranges = ranges_of(access.admin(), written.topic, Limits(), committed)
    found = [
        (offset, key, value)
        for each in split(ranges, 1)
        for raw in fetch(access, committed, each)
        for offset, key, value in zip(raw.offsets, raw.keys, raw.values, strict=True)
    ]
    assert found == [(r.offset, r.key, r.value) for r in written.committed]
