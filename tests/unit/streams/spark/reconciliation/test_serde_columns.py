"""Test which values count as equal though their bytes differ, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import serdes
from streams.errors import UserError
from streams.serdes import Serde
from streams.spark.reconciliation.serde_columns import (
    are_close,
    format_value,
    serialize_column,
    sort_json_members,
)
from tests import edge_values as edges
from tests.unit.properties import examples


@dataclass(frozen=True)
class Total:
    number: int
    mean: float


@pytest.mark.parametrize(
    ("one", "other", "tolerance", "equal"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, 0.0, True),
        ({"a": 1}, {"a": 2}, 0.0, False),
        ({"a": 1}, {"a": 1, "b": None}, 0.0, False),
        ([1.0, 2], [1.0000001, 2], 1e-6, True),
        ([1.0, 2], [1.0000001, 2], 0.0, False),
        ([1, 2], [1, 2, 3], 1.0, False),
        (1e9, 1e9 + 1, 1.0, True),
        (1e9, 1e9 + 1, 0.01, False),
        (1.0, 1, 0.0, True),
        (1.0, "1.0", 1.0, False),
        (1, 2, 9.0, False),
        (1, True, 0.0, False),
        (1.0, True, 1.0, False),
        (2**53 + 1, 2.0**53, 0.0, False),
        (2**53 + 1, 2.0**53, 1.0, True),
        (10**400, float("inf"), 1.0, False),
        (10**400, 1.0, 1.0, False),
        (float("inf"), float("inf"), 0.0, True),
        (float("inf"), -float("inf"), 1e308, False),
        (float("nan"), float("nan"), 0.0, True),
        (float("nan"), 1.0, 9.0, False),
        (Total(1, 0.5), Total(1, 0.5000001), 1e-6, True),
        (Total(1, 0.5), Total(2, 0.5), 1e-6, False),
        (None, None, 0.0, True),
    ],
)
def test_two_values_are_equal_or_not(
    one: Any, other: Any, tolerance: float, *, equal: bool
) -> None:
    assert are_close(one, other, tolerance) is equal
    assert are_close(other, one, tolerance) is equal


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (b'{"a":1,"b":[{"d":1,"c":2}]}', b'{"b": [{"c": 2, "d": 1}], "a": 1}', True),
        (b'{"b":1,"a":123456789012345678901}', b'{"a":123456789012345678901,"b":1}', True),
        (b"123456789012345678901", b"123456789012345678902", False),
        (b"18446744073709551616", b"18446744073709551616.0", False),
        (b"[" * 400 + b"{}" + b"]" * 400, b"[" * 400 + b"{ }" + b"]" * 400, True),
        (b"[" * 1020 + b"]" * 1020, b"[" * 1020 + b"]" * 1020, True),
        (b"no json", b"no json", True),
        (b"1", b"no json", False),
    ],
)
def test_json_is_compared_with_all_digits_at_any_depth(
    one: bytes, other: bytes, *, equal: bool
) -> None:
    found = [sort_json_members(serdes.json, each) for each in (one, other)]
    assert (found[0] == found[1]) is equal


class Silent:
    """Stands in for a class of a user whose repr fails."""

    def __repr__(self) -> str:
        raise LookupError


def test_a_value_whose_class_cannot_show_it_is_shown_in_hexadecimal() -> None:
    data = serdes.pickle.serialize(Silent())
    assert format_value(serdes.pickle, data) == f"0x{data.hex()}"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARROW: dict[str, tuple[Serde[Any], pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (serdes.string, pa.string(), edges.texts),
    "int32": (serdes.int32, pa.int32(), edges.int32s),
    "int64": (serdes.int64, pa.int64(), edges.int64s),
    "float64": (serdes.float64, pa.float64(), edges.any_floats),
    "text in JSON": (serdes.json, pa.string(), edges.texts),
    "number in JSON": (serdes.json, pa.float64(), edges.floats),
    "list in JSON": (
        serdes.json,
        pa.list_(pa.int64()),
        st.lists(st.none() | edges.int64s, max_size=4),
    ),
    "map in JSON": (
        serdes.json,
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(edges.texts, st.none() | edges.int64s, max_size=4),
    ),
    "struct in JSON": (
        serdes.json,
        pa.struct([("a", pa.bool_()), ("b", pa.string())]),
        st.tuples(st.none() | st.booleans(), st.none() | edges.texts).map(
            lambda found: {"a": found[0], "b": found[1]}
        ),
    ),
    "time by a pickle": (
        serdes.pickle,
        pa.timestamp("us", "Europe/Berlin"),
        edges.times_us.map(lambda us: EPOCH + timedelta(microseconds=us)),
    ),
    "date by a pickle": (serdes.pickle, pa.date32(), edges.dates),
    "bytes by a pickle": (serdes.pickle, pa.binary(), edges.binaries),
}
"""Columns of users: the application's serde, the type in Arrow, and values."""


@pytest.mark.parametrize("name", ARROW)
@examples(30)
@given(data=st.data())
def test_what_a_user_expects_is_written_as_the_value_that_it_is(
    name: str, data: st.DataObject
) -> None:
    serde, kind, values = ARROW[name]
    expected = data.draw(st.lists(st.none() | values, max_size=5))
    given_pairs = [
        [*each.items()] if name.startswith("map") and each else each for each in expected
    ]
    written = serialize_column(pa.array(given_pairs, kind), "value", serde).to_pylist()
    read = [None if each is None else serde.deserialize(each) for each in written]
    assert edges.are_same(read, expected)
    shown = [None if each is None else format_value(serde, each) for each in written]
    assert [each is None for each in shown] == [each is None for each in expected]
    pa.array(shown, pa.string()).validate(full=True)


@pytest.mark.parametrize(
    ("serde", "column", "message"),
    [
        (
            serdes.pickle,
            pa.array([253_402_300_800_000_000], pa.timestamp("us", "UTC")),
            r"column value can't be written as pickle: Python has dates of the years 1 to 9999",
        ),
        (serdes.json, pa.array([float("nan")]), "expected can't be written .* JSON has no nan"),
        (serdes.float64, pa.array([2**53 + 1]), "serde float64: float64 takes float, or int that"),
        (serdes.int32, pa.array([2**31]), "serde int32"),
        (serdes.json, pa.array([Decimal("1.10")]), "JSON gives back no Decimal"),
        (
            serdes.json,
            pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
            "a map has the key 'a' twice",
        ),
    ],
)
def test_what_would_be_another_value_is_refused(
    serde: Serde[Any], column: pa.Array, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        serialize_column(column, "value", serde)


@pytest.mark.parametrize(
    ("serde", "value", "text"),
    [
        (serdes.float64, float("nan"), "nan"),
        (serdes.float64, -0.0, "-0.0"),
        (serdes.json, {"a": None}, '{"a":null}'),
        (serdes.json, {"a": 123456789012345678901}, "{'a': 123456789012345678901}"),
        (serdes.pickle, {"a": float("inf"), "b": None}, "{'a': inf, 'b': None}"),
        (serdes.pickle, "a\ud800", "a\\ud800"),
        (serdes.pickle, ["\ud800"], "['\\ud800']"),
    ],
)
def test_a_value_is_shown_as_it_is(serde: Serde[Any], value: Any, text: str) -> None:
    assert format_value(serde, serde.serialize(value)) == text
