"""Represent ranges of offsets, and split them for tasks.

One big partition of a topic feeds many tasks: splitting it by offsets needs no look at the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Represents the offsets of one partition from `first` up to, and without, `until`.

    `topic_id` tells the topic from a later one of the same name; None where it is not known.
    """

    topic: str
    partition: int
    first: int
    until: int
    topic_id: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] {self.first}..{self.until}"


def split_ranges(ranges: Iterable[OffsetRange], records_per_split: int) -> Iterator[OffsetRange]:
    """Yield the same offsets in non-empty ranges of at most `records_per_split` offsets."""
    for each in ranges:
        for first in range(each.first, each.until, records_per_split):
            until = min(first + records_per_split, each.until)
            yield replace(each, first=first, until=until)
