"""Find the newest records of several partitions, though not every offset is a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from streams.common.topic_partitions import Partition


class RecordReader(Protocol):
    """Reads records from positions up to ends, as `TopicRecordReader` does."""

    def read_records(
        self, positions: Mapping[Partition, int], ends: Mapping[Partition, int] | None = None
    ) -> Iterator[Any]: ...


def read_newest_messages(
    reader: RecordReader,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    count: int,
) -> list[Any]:
    """Return the `count` newest records before `ends`, or all if there are fewer, by their times.

    The last `count` offsets of each partition may be markers or aborted records: a partition in
    which fewer records were found is read again from twice as far back.
    """
    newest: list[Any] = []
    window = dict.fromkeys(ends, count)
    unread = set(ends)
    found: dict[Partition, list[Any]] = {partition: [] for partition in ends}
    while unread:
        positions = {p: max(ends[p] - window[p], starts[p]) for p in unread}
        for partition in unread:
            found[partition] = []
        for message in reader.read_records(positions, {p: ends[p] for p in unread}):
            found[Partition(message.topic(), message.partition())].append(message)
        unread = {p for p in unread if len(found[p]) < count and positions[p] > starts[p]}
        for partition in unread:
            window[partition] *= 2
    for messages in found.values():
        newest += messages[-count:]
    newest.sort(key=lambda each: (each.timestamp()[1], each.partition(), each.offset()))
    return newest[-count:]
