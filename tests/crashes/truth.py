"""Compute what every store and the output must hold, from a plain loop over the input."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.crashes.topology import GAP_MS, GROUPS, WINDOW_MS

Contents = dict[Any, Any]


class Given(NamedTuple):
    """Holds a record of the input."""

    key: str
    value: int
    timestamp_ms: int


def totals(given: Iterable[Given]) -> Contents:
    sums: Contents = defaultdict(int)
    for record in given:
        sums[record.key] += record.value
    return dict(sums)


def windows(given: Iterable[Given]) -> Contents:
    """Return the expected window store's contents by key and window start."""
    sums: Contents = defaultdict(int)
    for record in given:
        sums[record.key, record.timestamp_ms - record.timestamp_ms % WINDOW_MS] += record.value
    return dict(sums)


def sessions(given: Iterable[Given]) -> Contents:
    """Return the expected session store's contents by key, start and end.

    The records of a key come in the order of their timestamps.
    """
    found: Contents = {}
    open_at: dict[str, tuple[int, int]] = {}
    for key, value, time_ms in given:
        start_ms, end_ms = open_at.get(key, (time_ms, time_ms))
        if time_ms - end_ms <= GAP_MS:
            value += found.pop((key, start_ms, end_ms), 0)
        else:
            start_ms = time_ms
        open_at[key] = (start_ms, time_ms)
        found[key, start_ms, time_ms] = value
    return found


def versions(given: Iterable[Given]) -> Contents:
    """Return the expected versions by key and timestamp: what the key came to then."""
    sums: Contents = defaultdict(int)
    found: Contents = {}
    for record in given:
        sums[record.key] += record.value
        found[record.key, record.timestamp_ms] = sums[record.key]
    return found


def seen(given: Iterable[Given]) -> Contents:
    """Return all values of each key in their order."""
    found: Contents = defaultdict(list)
    for record in given:
        found[record.key].append(record.value)
    return dict(found)


def regrouped(given: Iterable[Given]) -> Contents:
    """Return how many values have each remainder."""
    return dict(Counter(str(record.value % GROUPS) for record in given))


def output(given: Iterable[Given]) -> dict[str, list[int]]:
    """Return every total of each key in its order."""
    found: dict[str, list[int]] = defaultdict(list)
    sums: Contents = defaultdict(int)
    for record in given:
        sums[record.key] += record.value
        found[record.key].append(sums[record.key])
    return dict(found)


def of(store: str) -> Any:
    """Return the truth of a store by its name."""
    return {
        "totals": totals,
        "windows": windows,
        "sessions": sessions,
        "versions": versions,
        "seen": seen,
        "regrouped": regrouped,
    }[store.removesuffix("-in-memory")]


def contents(store: str, opened: Any, expected: Contents) -> Iterator[tuple[Any, Any]]:
    """Yield what an opened store holds, keyed as the truth is.

    Versions are asked for at the times that the truth knows: a versioned store has no list of them.
    """
    match store.removesuffix("-in-memory"):
        case "totals" | "seen" | "regrouped":
            yield from opened.all()
        case "windows":
            yield from (((w.key, w.start_ms), value) for w, value in opened.all())
        case "sessions":
            yield from (((s.key, s.start_ms, s.end_ms), value) for s, value in opened.all())
        case _:
            for key, time_ms in expected:
                version = opened.get(key, time_ms)
                if version is not None and version.timestamp_ms == time_ms:
                    yield (key, time_ms), version.value
