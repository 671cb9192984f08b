"""Number the directories of tasks by the contents of their sub-topologies: a pure function.

A task is `<sub-topology>_<partition>`, and the first number is the sub-topology's place in the
topology: it changes when a step is put before others, and two versions that run side by side on one
machine may number differently. Its directory stays: it is found by the topics that the sub-topology
reads and the stores that it has.

    what is known of a directory          it is taken by
    the same sources and stores           that sub-topology
    a store that is the same              else the one that shares most stores with it
    a source that is the same             else the one that shares most sources with it
    nothing of these                      nobody: it stays as it is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Contents(NamedTuple):
    """Names the source topics of a sub-topology and its stores."""

    sources: frozenset[str]
    stores: frozenset[str]


def number_directories(
    known: Mapping[int, Contents], wanted: Mapping[int, Contents]
) -> dict[int, int]:
    """Return the directory number of each sub-topology, given the directories that are known.

    No two share one. A sub-topology that is not known gets its own number if that is free, else
    another.
    """
    found: dict[int, int] = {}
    for likeness in (_is_same, _shared_stores, _shared_sources):
        for number, contents in sorted(wanted.items()):
            if number in found:
                continue
            left = {n: likeness(known[n], contents) for n in known.keys() - found.values()}
            best = max(left, key=lambda n: (left[n], n == number, -n), default=None)
            if best is not None and left[best]:
                found[number] = best
    free = _free_numbers({*known, *found.values(), *wanted})
    for number in sorted(wanted.keys() - found.keys()):
        taken = number in known or number in found.values()
        found[number] = next(free) if taken else number
    return found


def _is_same(one: Contents, other: Contents) -> int:
    return int(one == other)


def _shared_stores(one: Contents, other: Contents) -> int:
    return len(one.stores & other.stores)


def _shared_sources(one: Contents, other: Contents) -> int:
    return len(one.sources & other.sources)


def _free_numbers(taken: set[int]) -> Iterator[int]:
    number = 0
    while True:
        if number not in taken:
            yield number
        number += 1
