"""Wrap confluent-kafka's clients as the runtime uses them: the only package that imports them.

Every error that leaves it is one of `streams.errors`, which selects the recovery. Calls that wait
are bounded by `request_timeout_ms`.
"""

from streams.runtime.clients.admin import Admin
from streams.runtime.clients.committed import stable_offset
from streams.runtime.clients.consumer import DataConsumer
from streams.runtime.clients.errors import recovery_from
from streams.runtime.clients.factory import Clients
from streams.runtime.clients.partitioning import partition_of
from streams.runtime.clients.producer import (
    DataProducer,
    group_metadata,
    recovery_from_produce,
)
from streams.runtime.clients.reader import Header, RangeReader
from streams.runtime.clients.retrying import retry

__all__ = [
    "Admin",
    "Clients",
    "DataConsumer",
    "DataProducer",
    "Header",
    "RangeReader",
    "group_metadata",
    "partition_of",
    "recovery_from",
    "recovery_from_produce",
    "retry",
    "stable_offset",
]
