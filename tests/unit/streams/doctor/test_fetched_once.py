"""Test that a fact is fetched once, also where that fails."""

from __future__ import annotations

import pytest

from streams.doctor.fetched_once import fetched_once


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
