"""Test places that the matrix' cluster in memory has not: a global table's joiner, a punctuation.

Foreign-key joins are in neither: which updates they let through depends on when answers come.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streams import (
    App,
    ErrorContext,
    Processor,
    Record,
    StreamsError,
    TopologyTestDriver,
    dead_letter,
    serdes,
)
from tests.unit.streams.runtime.poison.operators import TEXT

POISON = "poison"
VALUES = ("a", POISON, "b", "c")
DEAD = "dead"


def refuse_poison(value: Any) -> Any:
    if value == POISON:
        raise ValueError("not this one")
    return value


def join_global_table(app: App) -> None:
    table = app.global_table("other", **TEXT)
    stream = app.stream("in", **TEXT)
    joined = stream.join(
        table,
        lambda one, two: refuse_poison(one),
        key=lambda key, value: key,
        value=serdes.string,
        name="bad",
    )
    joined.to("out", **TEXT)


def punctuate(app: App) -> None:
    """Build a processor whose punctuation fails once, after the poison record."""

    class Counting(Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.last = ""
            context.schedule(timedelta(milliseconds=1), self.look_at_last, clock="stream")

        def process(self, record: Record[str, str]) -> None:
            self.last = record.value
            if record.value != POISON:
                self.context.forward(record)

        def look_at_last(self, time_ms: int) -> None:
            refuse_poison(self.last)

    app.stream("in", **TEXT).process(Counting, name="bad", **TEXT).to("out", **TEXT)


PLACES: dict[str, Callable[[App], None]] = {
    "a global table's joiner": join_global_table,
    "a punctuation": punctuate,
}


def load(place: str, handler: Any) -> TopologyTestDriver:
    app = App("a", processing_handler=handler)
    PLACES[place](app)
    driver = TopologyTestDriver(app)
    if place == "a global table's joiner":
        driver.topic("other").pipe("k", "row")
    return driver


def pipe_all(driver: TopologyTestDriver) -> None:
    for number, value in enumerate(VALUES):
        driver.topic("in").pipe("k", value, timestamp_ms=1_000 + number)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("handler", ["skip", dead_letter(DEAD), lambda failure: "skip"])
def test_a_failure_is_handled_and_all_other_records_come_out_once(place: str, handler: Any) -> None:
    driver = load(place, handler)
    pipe_all(driver)
    assert [each.value for each in driver.topic("out").read_all()] == ["a", "b", "c"]


@pytest.mark.parametrize("place", PLACES)
def test_a_function_is_asked_once_with_the_step(place: str) -> None:
    asked: list[ErrorContext] = []

    def handle(failure: ErrorContext) -> Any:
        asked.append(failure)
        return "skip"

    pipe_all(load(place, handle))
    assert [(each.stage, each.step) for each in asked] == [("processing", "bad")]
    if place == "a global table's joiner":
        assert (asked[0].topic, asked[0].offset, asked[0].source_value) == ("in", 1, b"poison")


@pytest.mark.parametrize("place", PLACES)
def test_by_default_the_error_names_the_step_and_how_to_decide(place: str) -> None:
    with pytest.raises(StreamsError, match=r"'bad'.*not this one|not this one.*'bad'") as error:
        pipe_all(load(place, "fail"))
    if place == "a global table's joiner":
        assert "in[0]@1" in str(error.value)
        assert "processing_handler= decides about such records" in str(error.value)


@pytest.mark.parametrize(
    ("place", "origin"),
    [
        ("a global table's joiner", "in[0]@1"),
        ("a punctuation", "a punctuation of task 0_0"),
    ],
)
def test_the_line_of_a_skipped_failure_says_what_has_failed(
    place: str, origin: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING"):
        pipe_all(load(place, "skip"))
    (line,) = [each.getMessage() for each in caplog.records if " failed: " in each.getMessage()]
    assert line.startswith(f"step 'bad': processing of {origin} failed: skipped: ")
