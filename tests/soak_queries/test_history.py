"""Test that the checker of answers sees each kind of wrong answer."""

from __future__ import annotations

import re

import pytest

from tests.soak_queries.history import Answer, Counted, History


@pytest.fixture(name="history")
def _history() -> History:
    """Return a history of two keys in two partitions, of which all but the last are committed."""
    history = History()
    for offset in range(10):
        history.add_record("a", offset * 2_000, 0, offset)
        history.add_record("b", 0, 1, offset)
    history.add_committed(100.0, {0: 5, 1: 5})
    history.add_committed(101.0, {0: 9, 1: 9})
    history.sort()
    return history


def answer(
    kind: str,
    counts: dict[Counted, int],
    offset: int,
    *,
    at_s: float = 100.5,
    age_s: float = 0.1,
    first: str = "a",
    has_more: bool = False,
    from_ms: int = 0,
    at_least: int = 0,
) -> Answer:
    position = {0: offset, 1: offset}
    exact = kind != "standby"
    reached = {0: at_least}
    return Answer(
        kind, first, at_s, counts, position, age_s, exact, has_more, "b", from_ms, reached
    )


def test_what_was_true_at_its_position_is_right(history: History) -> None:
    for right in (
        answer("key", {("a", None): 7}, 7),
        answer("window", {("a", 0): 5, ("a", 10_000): 2}, 7),
        answer("windows", {("a", 0): 5, ("a", 10_000): 2, ("b", 0): 7}, 7),
        answer("windows", {("a", 10_000): 2}, 7, from_ms=5_000),
        answer("later key", {("a", None): 7}, 7, at_least=7),
        answer("range", {("a", None): 6, ("b", None): 6}, 6),
        answer("range", {("a", None): 6}, 6, has_more=True),
        answer("range", {("b", None): 6}, 6, first="b"),
        answer("standby", {("a", None): 7}, 5),
        answer("key", {("a", None): 5}, 5, at_s=101.05),
        answer("standby", {}, 0, at_s=100.05),
    ):
        assert history.judge(right) == ""


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (answer("key", {("a", None): 8}, 7), "from 7 to 7"),
        (answer("key", {("a", None): 6}, 7), "from 7 to 7"),
        (answer("key", {}, 7), "is missing: 7"),
        (answer("window", {("a", 0): 5}, 7), "is missing: 2"),
        (answer("windows", {("a", 0): 5}, 7), "is missing: 2"),
        (answer("windows", {}, 7, from_ms=5_000), "is missing: 2"),
        (answer("later key", {("a", None): 7}, 7, at_least=8), "0 is not at 8"),
        (answer("range", {("a", None): 7}, 7), r"\('b', None\) is missing"),
        (answer("range", {("b", None): 7}, 7, has_more=True), r"\('a', None\) is missing"),
        (answer("key", {("c", None): 1}, 7), "no such record"),
        (answer("key", {("a", None): 4}, 4), "5 was committed"),
        (answer("key", {("a", None): 5}, 5, at_s=101.2), "9 was committed"),
        (answer("standby", {("a", None): 4}, 0), "offset 5 was committed"),
        (answer("standby", {("a", None): 11}, 5), "from 5 to 10"),
        (answer("standby", {("a", None): 0}, 0), "offset 5 was committed"),
    ],
)
def test_what_was_never_true_or_is_older_than_it_says_is_wrong(
    history: History, wrong: Answer, reason: str
) -> None:
    assert re.search(reason, history.judge(wrong))
