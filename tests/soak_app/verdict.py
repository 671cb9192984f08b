"""Check what must hold at the end: nothing lost, doubled or out of order within its key.

Each check returns what is wrong, in words; an empty list is a pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce

from tests.soak_app.topology import GROUPS, next_digest

Pairs = Iterable[tuple[str, int]]
"""Records of an output in the order in which they were read: key, value."""


def copied(found: Pairs, written: Mapping[str, int]) -> list[str]:
    """Check that every record is there once, and in the order in which it was written."""
    wrong: list[str] = []
    following: dict[str, int] = defaultdict(int)
    for key, number in found:
        if number != following[key]:
            kind = "doubled or late" if number < following[key] else "lost before it"
            wrong.append(f"copied: {key} has {number} where {following[key]} follows: {kind}")
        following[key] = number + 1
    return wrong + [
        f"copied: {key} ends with {following[key] - 1} and not {count - 1}"
        for key, count in written.items()
        if following[key] != count
    ]


def counted(name: str, found: Pairs, truth: Mapping[str, int]) -> list[str]:
    """Check that counts only rise, and that the last one of each key is the truth."""
    wrong: list[str] = []
    last: dict[str, int] = defaultdict(int)
    for key, count in found:
        if count <= last[key]:
            wrong.append(f"{name}: {key} goes from {last[key]} to {count}")
        last[key] = count
    return wrong + [
        f"{name}: {key} is {last[key]} and not {count}"
        for key, count in truth.items()
        if last[key] != count
    ]


def digested(found: Pairs, written: Mapping[str, int]) -> list[str]:
    """Check that the last digest of each key is that of all its records in their order."""
    last = dict(found)
    wrong: list[str] = []
    for key, count in written.items():
        if count and last.get(key) != reduce(next_digest, range(count), 0):
            wrong.append(f"digests: {key} is {last.get(key)}, not that of {count} records in order")
    return wrong


def regrouped(written: Mapping[str, int]) -> Counter[str]:
    """Return the true counts behind the repartition topic."""
    truth: Counter[str] = Counter()
    for key, count in written.items():
        truth[f"group-{int(key[4:]) % GROUPS}"] += count
    return truth
