"""Test how durations are written in findings."""

from __future__ import annotations

import pytest

from streams.doctor.durations import format_duration

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3.0, "0 s"),
        (0.0, "0 s"),
        (90.0, "90 s"),
        (2 * MINUTE, "2 min"),
        (12 * MINUTE + 59, "12 min"),
        (119 * MINUTE, "119 min"),
        (30 * HOUR + 3_500, "30 h"),
        (2 * DAY, "2 days"),
        (3_000.9 * DAY, "3,000 days"),
    ],
)
def test_a_duration_is_whole_units_of_the_largest_of_which_it_has_two(
    seconds: float, text: str
) -> None:
    assert format_duration(seconds) == text
