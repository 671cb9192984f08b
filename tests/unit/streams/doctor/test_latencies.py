"""Test that a broker that stalls is told from one that answers late once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from streams.doctor.latencies import ROUNDS, choose_typical_s, time_requests


@pytest.mark.parametrize(
    ("times_s", "typical_s"),
    [
        ([0.001, 0.002, 2.0, 0.001, 0.001], 0.002),
        ([1.2, 0.001, 2.5, 0.001, 2.5], 2.5),
        ([0.0, 1.3, 0.0, 0.0, 1.2], 1.2),
        ([0.4], 0.4),
    ],
)
def test_two_late_answers_of_five_count_and_one_does_not(
    times_s: Sequence[float], typical_s: float
) -> None:
    assert choose_typical_s(times_s) == typical_s


def test_requests_take_turns() -> None:
    asked: list[str] = []

    def ask_slowly() -> None:
        asked.append("slow")
        time.sleep(0.02)

    slow_s, quick_s = time_requests(ask_slowly, lambda: asked.append("quick"))
    assert asked == ["slow", "quick"] * ROUNDS
    assert slow_s >= 0.02 > quick_s
