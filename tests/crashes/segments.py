"""Tell who wrote the records of a partition, from the log files of either broker."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# base offset, length, leader epoch, magic, checksum, attributes, last offset delta, two timestamps,
# producer id, producer epoch; source: Kafka's DefaultRecordBatch
_HEADER = struct.Struct(">qiibIhiqqqh")
_BEFORE_LENGTH_ENDS = 12
_CONTROL = 0x20


class Written(NamedTuple):
    """Holds one batch of records with its producer."""

    topic: str
    partition: int
    offset: int
    producer_id: int
    epoch: int
    is_marker: bool
    """Of the coordinator: the end of the producer's transaction."""


def written(data_dir: Path, topic: str, partitions: int) -> Iterator[Written]:
    """Yield every batch of a topic, the coordinator's markers among them."""
    for partition in range(partitions):
        for path in sorted((data_dir / f"{topic}-{partition}").glob("*.log")):
            data, at = path.read_bytes(), 0
            while at + _HEADER.size <= len(data):
                offset, length, *_, attributes, _, _, _, producer, epoch = _HEADER.unpack_from(
                    data, at
                )
                if length <= 0:
                    break
                marks = bool(attributes & _CONTROL)
                yield Written(topic, partition, offset, producer, epoch, marks)
                at += _BEFORE_LENGTH_ENDS + length
