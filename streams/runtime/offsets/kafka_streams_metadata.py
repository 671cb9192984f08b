"""Decode the metadata that Kafka Streams commits with an offset.

Beside the time of the partition it has figures of processors: steps that emit windows when they
close note how far they have emitted, under the name of their store.

    bytes   base64 of: version (int8), partition time in ms (int64), then, from version 2 on, a
            count (int32) and for each figure the length of its name (int32), the name, the figure
            (int64)

Source: TopicPartitionMetadata.java, ProcessorMetadata.java.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

_HEAD = struct.Struct(">bq")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VERSIONS = (1, 2)


@dataclass(frozen=True, slots=True)
class KafkaStreamsMetadata:
    """Holds what Kafka Streams has committed with an offset; times in ms.

    `figures` are those of processors, by the names under which these keep them.
    """

    partition_time_ms: int
    figures: Mapping[str, int] = field(default_factory=dict)


def decode_kafka_streams_metadata(text: str) -> KafkaStreamsMetadata | None:
    """Decode the metadata of an offset; return None for those of another writer."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(data) < _HEAD.size or data[0] not in _VERSIONS:
        return None
    version, time_ms = _HEAD.unpack_from(data)
    try:
        figures = _decode_processor_metadata(data[_HEAD.size :]) if version > 1 else {}
    except (struct.error, UnicodeDecodeError):
        return None
    return KafkaStreamsMetadata(time_ms, figures)


def _decode_processor_metadata(data: bytes) -> dict[str, int]:
    """Decode the figures of processors. Raises struct.error for bytes that are cut."""
    if not data:
        return {}
    (count,) = _INT32.unpack_from(data)
    place = _INT32.size
    figures = {}
    for _ in range(count):
        (length,) = _INT32.unpack_from(data, place)
        place += _INT32.size
        name = data[place : place + length].decode()
        (figures[name],) = _INT64.unpack_from(data, place + length)
        place += length + _INT64.size
    return figures
