"""Make valid requests of every API in every served version, from which mutations start.

They speak of things that the broker has, all of them named `x`: so most mutations get past the
first check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any
from uuid import UUID

from kio.index import load_request_schema

from coordinator.api.router import APIS
from coordinator.wire.array_limits import find_element_type
from coordinator.wire.codec import build_entity
from tests.own_batches import encode_batch
from tests.unit.coordinator.api.client import request_bytes
from tests.unit.coordinator.log.logs import NOW_MS

NAME = "x"
COMPACTED = "compacted"  # a topic whose records the broker opens
BATCH = encode_batch([(b"key", b"value"), (None, b"")], timestamp_ms=NOW_MS)
TRANSACTIONAL_BATCH = encode_batch(
    [(b"key", b"value")],
    timestamp_ms=NOW_MS,
    producer_id=0,
    producer_epoch=0,
    base_sequence=0,
    transactional=True,
)
# By the field's name, and if it isn't here by its type.
_BY_NAME: Mapping[str, Any] = {
    "acks": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "partition_max_bytes": 1_000,
    "max_bytes": 10_000,
    "min_bytes": 1,
    "transaction_timeout": 1_000,
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "replica_id": -1,
    "key_type": 1,
    "coordinator_epoch": 0,
    "resource_type": 2,
    "current_leader_epoch": -1,
}
_BY_TYPE: Mapping[str, Any] = {
    "string": NAME,
    "bytes": b"user data",
    "records": BATCH,
    "bool": False,
    "float64": 0.0,
}


def about_a_batch(topic: str, batch: bytes) -> tuple[bytes, ...]:
    """Make requests that write a batch to partition 0 and have the broker look into it."""
    data = [{"index": 0, "records": batch}]
    asked = [
        {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        for timestamp in (NOW_MS, NOW_MS + 1, -3)
    ]
    return (
        _frame(
            0,
            10,
            transactional_id=NAME,
            acks=-1,
            timeout=1_000,
            topic_data=[{"name": topic, "partition_data": data}],
        ),
        *(
            _frame(
                2,
                7,
                replica_id=-1,
                isolation_level=0,
                topics=[{"name": topic, "partitions": [each]}],
            )
            for each in asked
        ),
    )


def _frame(api_key: int, version: int, **given: Any) -> bytes:
    request_type: Any = load_request_schema(api_key, version)
    return request_bytes(build_entity(request_type, given))


@cache
def corpus(topic_id: UUID) -> tuple[bytes, ...]:
    """Return the frames of valid requests, without their lengths."""
    found = []
    for api in APIS:
        for version in api.VERSIONS:
            request_type: Any = load_request_schema(api.API_KEY, version)
            frame = request_bytes(_valid(request_type, topic_id))
            found.append(frame)
            if BATCH in frame and not request_type.__flexible__:
                size, other = (
                    len(each).to_bytes(4, "big") for each in (BATCH, TRANSACTIONAL_BATCH)
                )
                found.append(frame.replace(size + BATCH, other + TRANSACTIONAL_BATCH))
    return tuple(found)


def _valid(entity_type: Any, topic_id: UUID) -> Any:
    return build_entity(entity_type, {f.name: _value(f, topic_id) for f in fields(entity_type)})


def _value(field: Any, topic_id: UUID) -> Any:
    inner, is_array = find_element_type(field.type)
    if "tag" in field.metadata and field.default is not MISSING:
        return field.default
    one: Any
    if is_dataclass(inner):
        one = _valid(inner, topic_id)
    elif field.name in _BY_NAME:
        one = _BY_NAME[field.name]
    elif field.metadata["kafka_type"] == "uuid":
        one = topic_id
    else:
        one = _BY_TYPE.get(field.metadata["kafka_type"], 0)
    return (one,) if is_array else one
