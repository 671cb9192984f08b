"""Test that a record takes those timestamps that can be written, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from streams import Record


@pytest.mark.parametrize("time_ms", [0, 1, 2**63 - 1, True])
def test_a_time_of_64_bits_is_taken(time_ms: int) -> None:
    assert Record("k", "v", 5).with_timestamp(time_ms).timestamp_ms == time_ms


@pytest.mark.parametrize(
    ("time_ms", "error", "message"),
    [
        (-1, ValueError, "can't be negative: -1"),
        (2**63, ValueError, "can't have more than 64 bits: 9223372036854775808"),
        (1.5, TypeError, "is a whole number of milliseconds, not 1.5"),
        ("1", TypeError, "is a whole number of milliseconds, not '1'"),
        (None, TypeError, "is a whole number of milliseconds, not None"),
    ],
)
def test_another_time_is_refused_where_it_is_given(
    time_ms: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Record("k", "v", 5).with_timestamp(time_ms)
    with pytest.raises(error, match=message):
        Record("k", "v", time_ms)
