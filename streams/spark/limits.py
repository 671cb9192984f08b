"""What is to be read of a topic: of which partitions, which offsets. Asks, and reads nothing.

The end is the last stable offset, below which no transaction is open; with `read_uncommitted` the
high watermark. Offsets that were asked for and are gone, or are not there yet, are an error: as
Spark's own connector has it with `failOnDataLoss`, there is never silently less.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from streams.errors import ConfigError, OutcomeUnknown, StreamsError
from streams.positions import Partition
from streams.runtime.clients import Admin
from streams.spark.access import START_TIMEOUT_S
from streams.spark.options import At, Isolation, Limits
from streams.spark.ranges import OffsetRange


def ranges_of(admin: Admin, topic: str, limits: Limits, isolation: Isolation) -> list[OffsetRange]:
    """The offsets to be read of each partition; a partition of which there are none is there too.

    Raises ConfigError for a topic, a partition or offsets that aren't there, StreamsError while no
    broker answers.
    """
    partitions = _partitions(admin, topic, limits)
    try:
        return _ranges(admin, partitions, limits, isolation)
    except OutcomeUnknown as unknown:
        raise StreamsError(f"the offsets of {topic} can't be asked for: {unknown}") from None


def _partitions(admin: Admin, topic: str, limits: Limits) -> list[Partition]:
    counts = admin.partition_counts_at_start(START_TIMEOUT_S)
    if topic not in counts:
        close = difflib.get_close_matches(topic, counts, n=3)
        similar = f"; similar ones are {', '.join(close)}" if close else ""
        raise ConfigError(f"there is no topic {topic!r}{similar}")
    numbers = range(counts[topic]) if limits.partitions is None else limits.partitions
    _check_numbers(topic, counts[topic], "partitions", numbers)
    for name in ("offsets_from", "offsets_to", "timestamps_from", "timestamps_to"):
        given = getattr(limits, name)
        if isinstance(given, Mapping):
            _check_numbers(topic, counts[topic], name, list(given))
    return [Partition(topic, number) for number in numbers]


def _check_numbers(topic: str, count: int, name: str, numbers: Sequence[int]) -> None:
    strange = [number for number in numbers if number >= count]
    if strange:
        raise ConfigError(
            f"option {name} names partition {strange[0]}: {topic} has {count}, from 0 on"
        )


def _ranges(
    admin: Admin, partitions: list[Partition], limits: Limits, isolation: Isolation
) -> list[OffsetRange]:
    starts = admin.earliest(partitions)
    committed = isolation is Isolation.READ_COMMITTED
    ends = admin.last_stable(partitions) if committed else admin.latest(partitions)
    found = []
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        first = _offset(limits.offsets_from, partition.number, start, end, start)
        until = _offset(limits.offsets_to, partition.number, start, end, end)
        if first < start or until > end or first > end:
            raise ConfigError(
                f"{partition}: offsets {first} to {until - 1} are asked for, and there are "
                f"{start} to {end - 1}"
            )
        found.append(OffsetRange(*partition, first, max(first, until)))
    return found


def _offset(given: At | Mapping[int, At], number: int, start: int, end: int, default: int) -> int:
    at = given.get(number, default) if isinstance(given, Mapping) else given
    return start if at == "earliest" else end if at == "latest" else int(at)
