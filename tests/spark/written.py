"""Read what is committed in a topic now, and make batches to write."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import RawBatch, fetch_batches
from streams.spark.source.options import IsolationLevel, TopicReadLimits
from streams.spark.source.range_planning import plan_offset_ranges
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client


def made(servers: str, topic: str, partitions: int = 1) -> str:
    """Create a topic and return its name."""
    with Client(servers) as client:
        create_topic(client, topic, partitions=partitions)
    return topic


def batches_of(servers: str, topic: str) -> list[RawBatch]:
    access = BrokerAccess(servers)
    ranges = plan_offset_ranges(
        access.create_admin(), topic, TopicReadLimits(), IsolationLevel.READ_COMMITTED
    )
    committed = IsolationLevel.READ_COMMITTED
    return [
        raw for each in ranges for raw in fetch_batches(access, committed, each, with_headers=True)
    ]


def values_of(servers: str, topic: str) -> list[str | None]:
    """Return the values sorted; of null, None comes first."""
    found = [value for raw in batches_of(servers, topic) for value in raw.values]
    return sorted((None if v is None else v.decode() for v in found), key=lambda v: (v or "", v))


def batch(values: Sequence[str], keys: Sequence[str] | None = None) -> pa.RecordBatch:
    columns = {"value": pa.array(values, pa.string())}
    if keys is not None:
        columns["key"] = pa.array(keys, pa.string())
    return pa.RecordBatch.from_pydict(columns)
