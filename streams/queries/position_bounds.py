"""Check what a read says of the inputs that a store has to have taken in (`at_least`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StoreUnavailable
from streams.queries.committed_reads import Position
from streams.topology.build import Subtopology
from streams.topology.resolve import resolve_subtopology_of_task


class PositionNotReached(StoreUnavailable):
    """Signals that a store has not taken in yet the inputs that a read asks for."""


def list_absent_partitions(position: Position, counts: Mapping[str, int]) -> list[Partition]:
    """Return the partitions of a position that the topics with so many partitions don't have."""
    if not position:
        return []
    return sorted(each for each in position if each.number >= counts.get(each.topic, 0))


def describe_absent_partitions(
    name: str, absent: Sequence[Partition], counts: Mapping[str, int]
) -> str:
    """Return why a position can't be reached that names partitions which there are not."""
    reasons = [
        f"{each}, and {each.topic} has {format_count(counts[each.topic], 'partition')}"
        if each.topic in counts
        else f"{each}, and there is no topic {each.topic}"
        for each in absent
    ]
    return f"store {name!r} never takes in what a position names: {'; '.join(reasons)}"


def check_position_topics(name: str, sub: Subtopology, position: Position) -> None:
    """Raise ConfigError for a position in a topic that the store's sub-topology does not read."""
    read = resolve_subtopology_of_task(sub, {p.topic for p in position}).sources
    if unread := sorted({p.topic for p in position} - read.keys()):
        raise ConfigError(
            f"store {name!r} takes in {', '.join(sorted(sub.declared_sources))}, and a position "
            f"names {', '.join(unread)}: give offsets of the former"
        )


def require_position_reached(
    name: str, position: Position, partitions: Collection[int], wanted: Position
) -> None:
    """Raise PositionNotReached if `position` has not reached what is wanted of `partitions`."""
    if not wanted:
        return
    behind = ", ".join(
        f"{partition} up to offset {offset} (it is at {position.get(partition, 0)})"
        for partition, offset in wanted.items()
        if partition.number in partitions and position.get(partition, 0) < offset
    )
    if behind:
        raise PositionNotReached(f"store {name!r} has not taken in {behind} yet")
