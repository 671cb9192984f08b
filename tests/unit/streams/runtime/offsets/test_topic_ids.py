"""Test that an input which is gone from the brokers is told within seconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from streams.runtime.offsets.topic_ids import TopicIdCheck
from tests.unit.streams.runtime.fakes import Clock


class Consumer:
    """Stands in for a consumer that sees which topics brokers do not have."""

    def __init__(self) -> None:
        self.missing_topics: set[str] = set()

    def pop_seen_topic_ids(self) -> dict[str, str]:
        return {}

    def pop_out_of_range_positions(self) -> dict[Any, int]:
        return {}


class Checked:
    """Checks the inputs `in` and `more` of a task."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.consumer: Any = Consumer()
        self._check = TopicIdCheck(
            self.fetch, self.clock.monotonic_s, interval_s=300.0, on_change=lambda topics: None
        )

    def fetch(self, topics: Collection[str]) -> Mapping[str, int]:
        raise AssertionError("no broker is asked")

    def poll(self, after_s: float, *missing: str) -> None:
        self.clock.advance_monotonic_clock(after_s)
        self.consumer.missing_topics = set(missing)
        self._check.find_positions_out_of_range(
            self.consumer, lambda: [{"in": 1}, {"in": 1, "more": 2}]
        )


def test_an_input_that_is_gone_is_told_once_each_time_it_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checked = Checked()
    for _ in range(2):
        checked.poll(1.0, "in", "of another")
        checked.poll(1.0, "in", "of another")
        assert caplog.text == ""
        checked.poll(1.0, "in", "of another")
        checked.poll(1.0, "in", "of another")
        assert caplog.text.count("input 'in' is not on the brokers any more: it was deleted") == 1
        assert "of another" not in caplog.text
        caplog.clear()
        checked.poll(1.0)


def test_an_input_that_brokers_do_not_know_for_a_moment_is_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checked = Checked()
    for _ in range(3):
        checked.poll(1.0, "in")
        checked.poll(1.0)
    assert caplog.text == ""
