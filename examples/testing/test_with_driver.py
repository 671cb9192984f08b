"""Test the word count without a broker: `pytest examples/testing/test_with_driver.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from examples.word_count import app
from millrace import TopologyTestDriver

Drivers = Callable[..., TopologyTestDriver]


def test_words_are_counted(topology_driver: Drivers) -> None:
    driver = topology_driver(app, partitions={"lines": 4, "counts-by-word": 2})
    driver.topic("lines").pipe_many([("k", "to be or not"), ("l", "to be")])
    counts = {"to": 2, "be": 2, "or": 1, "not": 1}
    assert driver.topic("counts-by-word").read_table() == counts
    assert dict(driver.store("counts").all()) == counts


@pytest.mark.parametrize("step", ["PROCESSED", "PRODUCED", "OFFSETS_SENT", "COMMITTED", "STORED"])
def test_a_crash_in_a_commit_counts_nothing_twice(topology_driver: Drivers, step: str) -> None:
    driver = topology_driver(app)
    driver.crash(at=step, times=2)
    driver.topic("lines").pipe_many([("k", "to be or not"), ("l", "to be")])
    driver.restart()
    assert driver.topic("counts-by-word").read_table() == {"to": 2, "be": 2, "or": 1, "not": 1}
