"""Test what `millrace plan` says of inputs whose partition counts differ, and of missing topics."""

from __future__ import annotations

import pytest

from streams import App, serdes, topics
from streams.commands.plan_inputs import InputReview, review_inputs
from streams.topology.build import Topology


def merging(*, co_partitioned: bool = True) -> Topology:
    app = App("a")
    left, right = (
        app.stream(topic, key=serdes.string, value=serdes.string) for topic in ("left", "right")
    )
    merged = left.merge(right, co_partitioned=co_partitioned)
    merged.group_by_key().count(store="c").to_stream().to("out")
    return app.topology()


def test_inputs_that_meet_by_key_with_other_counts_are_told_before_a_start() -> None:
    review = review_inputs(merging(), {"left": 2, "right": 3})
    assert "'left' has 2, 'right' has 3" in review.conflict
    (line,) = review.list_lines()
    assert line.startswith("refused: a start ends with this: step ")


@pytest.mark.parametrize("counts", [{"left": 2, "right": 2}, {"left": 2}])
def test_equal_counts_and_those_that_are_not_known_are_no_conflict(counts: dict[str, int]) -> None:
    assert review_inputs(merging(), counts) == InputReview()


def test_inputs_that_are_declared_not_to_meet_may_differ() -> None:
    assert review_inputs(merging(co_partitioned=False), {"left": 2, "right": 3}) == InputReview()


def test_topics_that_brokers_do_not_have_are_told_with_the_command_that_creates_them() -> None:
    counts = {"left": 2, "right": 3}
    review = review_inputs(merging(), counts, ["dead"], "kafka:9092")
    assert review.missing.startswith("dead-letter topic 'dead' does not exist on kafka:9092")
    review = review_inputs(merging(), counts, [], "kafka:9092")
    assert "topic 'out' does not exist on kafka:9092" in review.missing
    assert "create-topics out`" in review.missing
    assert review.conflict
    assert review_inputs(merging(), {"out": 1}, [], "kafka:9092").conflict == ""


@pytest.mark.parametrize("counts", [{}, {"in-a": 2}])
def test_an_input_beside_a_pattern_that_does_not_exist_is_told(counts: dict[str, int]) -> None:
    app = App("a")
    matching, plain = (
        app.stream(read, key=serdes.string, value=serdes.string)
        for read in (topics.matching("in-.*"), "plain")
    )
    matching.merge(plain).group_by_key().count(store="c")
    assert review_inputs(app.topology(), counts).patterns == ()
    review = review_inputs(app.topology(), counts, [], "kafka:9092")
    assert "plain" in review.missing + review.conflict
