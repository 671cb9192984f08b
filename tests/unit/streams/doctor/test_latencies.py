"""Test that a broker that stalls is told from one that answers late once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from streams.doctor.latencies import ROUNDS, choose_second_longest_s, time_requests


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
    assert choose_second_longest_s(times_s) == typical_s


def test_a_request_that_was_answered_late_twice_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    now_s = 0.0

    def answer_after(name: str, seconds: float) -> None:
        nonlocal now_s
        asked.append(name)
        now_s += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    slow_s, quick_s = time_requests(
        lambda: answer_after("slow", 1.6), lambda: answer_after("quick", 0.01)
    )
    assert asked == ["slow", "quick"] * 2 + ["quick"] * (ROUNDS - 2)
    assert slow_s == pytest.approx(1.6)
    assert quick_s == pytest.approx(0.01)


def test_requests_take_turns() -> None:
    asked: list[str] = []

    def ask_slowly() -> None:
        asked.append("slow")
        time.sleep(0.02)

    slow_s, quick_s = time_requests(ask_slowly, lambda: asked.append("quick"))
    assert asked == ["slow", "quick"] * ROUNDS
    assert slow_s >= 0.02 > quick_s
