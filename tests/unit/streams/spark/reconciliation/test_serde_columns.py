"""Test which values count as equal though their bytes differ, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from streams import serdes
from streams.serdes import Serde
from streams.spark.reconciliation.serde_columns import (
    are_close,
    format_value,
    sort_json_members,
)


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
