"""Test the comparison of values with what is read back, and the sample of it at commits."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from decimal import Decimal
from math import nan
from typing import Any

import orjson
import pytest

from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.read_back import describe_first_difference
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint


@dataclass
class Point:
    x: float


class Opaque:
    """Has no equality of its own."""


class Array:
    """Answers a comparison with neither true nor false, as arrays do."""

    def __eq__(self, other: object) -> Any:
        return [True, False]

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("written", "read", "difference"),
    [
        ({"a": [1, (2,)]}, {"a": [1, [2]]}, "value['a'][1] is tuple (2,), and is read back as"),
        ({"a": 1}, {"b": 1}, "value is {'a': 1}, and is read back as {'b': 1}"),
        ([1], [1, 2], "value is [1], and is read back as [1, 2]"),
        (-0.0, 0.0, "value is -0.0"),
        (True, 1, "value is bool True, and is read back as int 1"),
        ([Point(1.0)], [Point(2.0)], "value[0].x is 1.0"),
        ({1}, {2}, "value is {1}"),
    ],
)
def test_a_difference_is_named_with_its_place(written: Any, read: Any, difference: str) -> None:
    assert (describe_first_difference(written, read) or "").startswith(difference)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"a": [1, None, "x", (nan,)]}, {"a": [1, None, "x", (nan,)]}),
        (Decimal("NaN"), Decimal("NaN")),
        (Opaque(), Opaque()),
        (Array(), Array()),
        (Point(nan), Point(nan)),
    ],
)
def test_equal_values_and_those_that_cannot_be_compared_pass(written: Any, read: Any) -> None:
    assert describe_first_difference(written, read) is None


def test_a_commit_warns_once_of_a_value_that_is_not_read_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    codecs = StoreCodecs(str.encode, bytes.decode, orjson.dumps, orjson.loads)
    store: KeyValueStore[str, Any] = KeyValueStore("s", MemoryDisk(), codecs, clock=lambda: 1)
    with caplog.at_level(logging.WARNING):
        for number, value in enumerate([[1], (1,), (2,)]):
            store.put("k", value)
            store.drain_writes()
            store.commit(StoreCheckpoint(number, "t"))
    (warning,) = [each.getMessage() for each in caplog.records]
    assert "store 's': the serde does not give back the value of key 'k'" in warning
    assert "value is tuple (1,), and is read back as list [1]" in warning
