"""Generate the values at the edges of what serdes carry, and compare values with their types.

`PLAIN` are values that JSON has; `FOREIGN` are those that it has not. The scalars are named by what
they are, so that the properties of other formats can choose theirs.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, OrderedDict, defaultdict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import hypothesis
from hypothesis import strategies as st

INTEGER_EDGES = [
    sign * 2**bits + step
    for bits in (7, 15, 31, 53, 63, 64, 67, 128, 1_000)
    for sign in (1, -1)
    for step in (-1, 0, 1)
] + [0, 10**18, 10**19 - 1, -(10**19), 123456789012345678901]
"""Integers about the limits of 8 to 64 bits, of doubles, and beyond."""
FLOAT_EDGES = [
    0.0,
    -0.0,
    5e-324,
    2.0**53,
    2.0**63,
    2.0**64,
    1e19,
    1.7976931348623157e308,
    0.1,
    1e-7,
]
NON_FINITE = [math.inf, -math.inf, math.nan]
TIMES_MS = [0, -1, 1, 253_402_300_799_999, 253_402_300_800_000, 9_223_372_036_854_775]
"""Times since 1970 in ms: the last of year 9999, the first after it, and year 294 247."""
TIMESTAMPS = [
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    datetime(1890, 1, 1, tzinfo=timezone(timedelta(minutes=53, seconds=28))),
]
TIMES_US = [0, -1, 1, 999, -62_135_596_800_000_000, 253_402_300_799_999_999]
"""Times since 1970 in µs: about 1970, the first and the last of Python's datetime."""
TIMES_US_BEYOND = [-62_135_596_800_000_001, 253_402_300_800_000_000, 2**63 - 1, -(2**63)]
"""Times that Python's datetime doesn't have: before year 1, after 9999, and Spark's own ends."""
SURROGATES = ["\ud800", "a\udfffb"]

integers = st.integers() | st.sampled_from(INTEGER_EDGES)
floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(FLOAT_EDGES)
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["", "null", "NaN", "\0", "\u2028", "😀", "00000000000000000000", "a, -99999999999999999999]"]
)
any_floats = st.floats() | st.sampled_from([*FLOAT_EDGES, *NON_FINITE])
"""Floats with NaN and the infinities."""
single_floats = st.floats(width=32) | st.sampled_from([0.0, -0.0, 16_777_217.0, *NON_FINITE])
int32s = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, -1, -(2**31), 2**31 - 1])
int64s = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [each for each in INTEGER_EDGES if -(2**63) <= each < 2**63]
)
binaries = st.binary() | st.sampled_from([b"", b"\0", b"\xff\xfe", b"null", b"\n\r\n"])
times_us = st.integers(TIMES_US[-2], TIMES_US[-1]) | st.sampled_from(TIMES_US)
datetimes = st.datetimes(timezones=st.none() | st.just(UTC)).map(
    lambda found: found.replace(fold=0)
) | st.sampled_from(TIMESTAMPS)
times = st.times().map(lambda found: found.replace(fold=0))
dates = st.dates() | st.sampled_from([date.min, date.max])
decimals = st.decimals(allow_nan=False) | st.sampled_from(
    [Decimal("1.10"), Decimal("-0"), Decimal("1E+400"), Decimal("0." + "1" * 60)]
)
uuids = st.uuids() | st.sampled_from([UUID(int=0), UUID(int=2**128 - 1)])

SCALARS = st.none() | st.booleans() | integers | floats | texts


def nest(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate lists and dicts of `leaves` with text keys, in each other."""
    return st.recursive(
        leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=12
    )


PLAIN = nest(SCALARS)


class Shade(Enum):
    """An enumeration of texts."""

    DARK = "dark"
    LIGHT = "light"


class Level(IntEnum):
    """An enumeration that passes for integers."""

    LOW = 1
    HIGH = 2


class Text(str):
    """A subclass of str."""


class Number(float):
    """A subclass of float."""


class Count(int):
    """A subclass of int."""


Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    _hidden: int = 0


FOREIGN = st.one_of(
    st.sampled_from([*NON_FINITE, *SURROGATES, *Shade, *Level]),
    st.builds(Text),
    st.builds(Number),
    st.builds(Count),
    st.sampled_from(
        [(), (1,), Pair(1, 2), Point(1), b"", b"a", set(), frozenset({1}), object(), range(3), 1j]
    ),
    st.sampled_from([{1: "a"}, {None: 1}, {True: 1}, {1.5: 1}, {Text("a"): 1}, {("a",): 1}]),
    st.sampled_from([Counter("a"), OrderedDict(a=1), defaultdict(int), timedelta(1)]),
    datetimes,
    dates,
    times,
    decimals,
    uuids,
    st.just(datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Berlin"))),
)


def draw_values(values: st.SearchStrategy[Any], count: int, seed: int) -> list[Any]:
    """Return `count` generated values, for a test that takes them all at once."""
    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(values)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def are_same(left: Any, right: Any) -> bool:
    """Return whether two values are equal with the types of all parts; NaN is the same as NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if dataclasses.is_dataclass(left):
        return all(
            are_same(getattr(left, each.name), getattr(right, each.name))
            for each in dataclasses.fields(left)
        )
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            are_same(*keys) and are_same(left[keys[0]], right[keys[1]])
            for keys in zip(left, right, strict=True)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(are_same, left, right))
    if isinstance(left, datetime | time):
        return bool(left == right) and left.utcoffset() == right.utcoffset()
    if isinstance(left, Decimal):
        return repr(left) == repr(right)
    return bool(left == right)
