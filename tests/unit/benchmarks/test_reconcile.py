"""Test how the benchmark of a reconciliation takes its parts from the lines of progress."""

from __future__ import annotations

import pytest

from benchmarks.reconcile import split_into_parts

TOLD = [
    (1.0, "WARNING: Using incubator modules: jdk.incubator.vector"),
    (8.0, "cut of six-stores taken in 0.5 s"),
    (12.0, "expected rows planned from 20,000 inputs in 4.0 s"),
    (15.0, "store counts compared in 2.9 s: 150 ok"),
    (19.0, "topic paid compared in 3.1 s: 5,000 ok"),
]


def test_the_parts_follow_each_other_and_together_are_the_whole() -> None:
    parts = split_into_parts(TOLD, 20.5)
    assert parts == {"start": 7.5, "cut": 0.5, "plan": 4.0, "compare": 7.0, "end": 1.5}
    assert sum(parts.values()) == 20.5


def test_a_line_of_progress_without_its_seconds_is_an_error() -> None:
    told = [(at, line.removesuffix(" in 0.5 s")) for at, line in TOLD]
    with pytest.raises(RuntimeError, match="cut of six-stores taken"):
        split_into_parts(told, 20.5)
