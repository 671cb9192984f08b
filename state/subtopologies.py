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


class SubtopologyContents(NamedTuple):
    """Names the source topics of a sub-topology and its stores."""

    sources: frozenset[str]
    stores: frozenset[str]


def match_directory_numbers_by_likeness(
    known_directories: Mapping[int, SubtopologyContents],
    subtopologies: Mapping[int, SubtopologyContents],
) -> dict[int, int]:
    """Return the directory number of each sub-topology, given the directories that are known.

    No two share one. A sub-topology that is not known gets its own number if that is free, else
    another.
    """
    found: dict[int, int] = {}
    for likeness in (_score_equal_contents, _score_shared_stores, _score_shared_sources):
        for number, contents in sorted(subtopologies.items()):
            if number in found:
                continue
            left = {
                n: likeness(known_directories[n], contents)
                for n in known_directories.keys() - found.values()
            }
            best = max(left, key=lambda n: (left[n], n == number, -n), default=None)
            if best is not None and left[best]:
                found[number] = best
    free = _iterate_free_numbers({*known_directories, *found.values(), *subtopologies})
    for number in sorted(subtopologies.keys() - found.keys()):
        taken = number in known_directories or number in found.values()
        found[number] = next(free) if taken else number
    return found


def _score_equal_contents(one: SubtopologyContents, other: SubtopologyContents) -> int:
    return int(one == other)


def _score_shared_stores(one: SubtopologyContents, other: SubtopologyContents) -> int:
    return len(one.stores & other.stores)


def _score_shared_sources(one: SubtopologyContents, other: SubtopologyContents) -> int:
    return len(one.sources & other.sources)


def _iterate_free_numbers(taken_numbers: set[int]) -> Iterator[int]:
    number = 0
    while True:
        if number not in taken_numbers:
            yield number
        number += 1
