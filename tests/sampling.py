"""Sample large matrices: choose the cases of a run in CI, the same ones for the same commit.

`make test` and `make ci` set `TEST_SAMPLE` to a number that follows from the commit, and
print it. Then a test marked `sampled(count)` runs that many of its parametrized cases, and what
draws a seed draws it from a pool; without the variable everything runs, and seeds are new ones.
`make ci-full` runs every case and every seed of a pool, so that each case of a sample can be run.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

VARIABLE = "TEST_SAMPLE"
SEEDS = range(4)
"""The pool of seeds: `make ci-full` runs each of them."""
_ROOT = Path(__file__).parents[1]
_DIGITS = 8


def sample_of_commit() -> int:
    """Return the number of the sample that belongs to the commit at hand; 0 outside a checkout."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return int(found.stdout[:_DIGITS], 16) if found.returncode == 0 else 0


def chosen_sample() -> int | None:
    """Return the number of the sample that this run takes; None if it takes no sample."""
    given = os.environ.get(VARIABLE, "")
    return int(given) if given else None


def choose(name: str, pool: Sequence[T], count: int = 1) -> list[T] | None:
    """Return `count` members of the pool for the use of that name; None if no sample is taken.

    Two uses of one sample choose independently of each other.
    """
    sample = chosen_sample()
    if sample is None:
        return None
    return random.Random(f"{sample} {name}").sample(pool, min(count, len(pool)))


def draw_seed(name: str) -> int:
    """Return a seed for the use of that name: one of `SEEDS` for a sample, else a new one."""
    chosen = choose(name, SEEDS)
    return random.SystemRandom().randrange(2**32) if chosen is None else chosen[0]


def draw_sample(name: str, pool: Sequence[T], count: int) -> list[T]:
    """Return `count` members of the pool in its order for a sample, else all of them."""
    chosen = choose(name, range(len(pool)), count)
    return list(pool) if chosen is None else [pool[index] for index in sorted(chosen)]


def drop_unsampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """Leave of each test marked `sampled(count)` that many cases in `items`; return the others.

    With `sampled(count, by="name")` so many values of the parameter `name` are left, the same ones
    for all tests of a module: what these share is made for no more of them. Cases on different
    brokers are counted apart, unless it is brokers that are chosen: `sampled(2)` leaves two cases
    on each broker, and `sampled(1, by="broker")` leaves all cases on one of them, and those of no
    broker. As the mark of a module `sampled(3, by="test")` leaves three of its tests, the same ones
    on both brokers. A test's own mark stands for that of its module, but for one `by="broker"`: its
    cases are on that broker, too.
    """
    families: dict[tuple[str, int], dict[str, list[pytest.Item]]] = {}
    for item in items:
        for marker in _list_marks(item):
            by = marker.kwargs.get("by")
            if by in (None, "test") or by in _parameters(item):
                cases = families.setdefault((_family(item, by), *marker.args), {})
                cases.setdefault(_case(item, by), []).append(item)
    dropped: set[pytest.Item] = set()
    for (family, count), cases in families.items():
        kept = choose(family, sorted(cases), count)
        if kept is not None:
            dropped.update(*(each for name, each in cases.items() if name not in kept))
    gone = [item for item in items if item in dropped]
    items[:] = [item for item in items if item not in dropped]
    return gone


def _list_marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks that hold for a test: the closest one, and those that choose a broker."""
    marks = [*item.iter_markers("sampled")]
    return marks[:1] + [each for each in marks[1:] if each.kwargs.get("by") == "broker"]


def _family(item: pytest.Item, by: str | None) -> str:
    """Return what a sample is drawn from: a test's cases, or a parameter's values in a module."""
    test = item.nodeid.partition("[")[0]
    if by is None:
        return f"{test} {_parameters(item).get('broker', '')}"
    broker = "" if by in ("broker", "test") else _parameters(item).get("broker", "")
    return f"{test.partition('::')[0]} {by} {broker}"


def _case(item: pytest.Item, by: str | None) -> str:
    match by:
        case None:
            return item.nodeid
        case "test":
            return item.nodeid.partition("[")[0]
        case _:
            return str(_parameters(item)[by])


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params
