"""Test which values count as equal though their bytes differ, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from streams.spark.reconciliation.serde_columns import are_close


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
