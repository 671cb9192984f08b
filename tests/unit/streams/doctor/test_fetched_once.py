"""Test that a fact is fetched once, also where that fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from streams.doctor.fetched_once import fetched_once
from tests.processes import HANG_LIMIT_S


class Facts:
    """Counts how often its facts are fetched."""

    def __init__(self) -> None:
        self.calls = 0

    @fetched_once
    def absent(self) -> None:
        self.calls += 1

    @fetched_once
    def failing(self) -> int:
        self.calls += 1
        raise OSError("no answer")


def test_a_fact_is_fetched_once_also_if_it_is_none() -> None:
    facts = Facts()
    assert [facts.absent(), facts.absent()] == [None, None]
    assert facts.calls == 1


def test_a_broker_that_is_away_is_waited_for_once() -> None:
    facts = Facts()
    for _ in range(2):
        with pytest.raises(OSError, match="no answer"):
            facts.failing()
    assert facts.calls == 1


class SlowFacts:
    """Holds a fact whose fetch waits until it is let go on."""

    def __init__(self) -> None:
        self.calls = 0
        self.has_begun, self.may_end = Event(), Event()

    @fetched_once
    def slow(self) -> int:
        self.calls += 1
        self.has_begun.set()
        assert self.may_end.wait(HANG_LIMIT_S)
        return 7


def test_a_point_that_needs_a_fact_which_another_fetches_waits_for_it() -> None:
    facts = SlowFacts()
    with ThreadPoolExecutor(2) as threads:
        looks = [threads.submit(facts.slow) for _ in range(2)]
        assert facts.has_begun.wait(HANG_LIMIT_S)
        facts.may_end.set()
        assert [each.result() for each in looks] == [7, 7]
    assert facts.calls == 1
