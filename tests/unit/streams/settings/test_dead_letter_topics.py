"""Test that dead letters go to no topic that their application reads: they would come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, StreamsError, TopologyTestDriver, dead_letter, serdes
from streams.errors import ConfigError

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def read_one(app: App) -> None:
    app.stream("orders", **TEXT).map_values(int).to("out", value=serdes.int64)


def read_own_output(app: App) -> None:
    read_one(app)
    app.stream("out", key=serdes.string, value=serdes.int64).for_each(lambda key, value: None)


def read_global_table(app: App) -> None:
    read_one(app)
    app.global_table("rates", **TEXT)


def count_by_value(app: App) -> None:
    by_value = app.stream("orders", **TEXT).group_by(lambda key, value: value, key=serdes.string)
    by_value.count(store=Store.in_memory("counts"))


@pytest.mark.parametrize("stage", ["deserialization", "processing", "production"])
@pytest.mark.parametrize(
    ("build", "topic"),
    [
        (read_one, "orders"),
        (read_own_output, "out"),
        (read_global_table, "rates"),
        (count_by_value, "a-counts-repartition"),
        (count_by_value, "a-counts-changelog"),
    ],
)
def test_a_topic_that_the_application_reads_is_refused_by_name(
    build: Callable[[App], None], topic: str, stage: str
) -> None:
    settings: Any = {f"{stage}_handler": dead_letter(topic)}
    app = App("a", **settings)
    build(app)
    message = rf"{stage}_handler=dead_letter\('{topic}'\): the application reads this topic itself"
    with pytest.raises(ConfigError, match=message):
        app.topology()


def test_an_output_that_the_application_does_not_read_may_have_dead_letters() -> None:
    app = App("a", processing_handler=dead_letter("out"))
    read_one(app)
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("orders").pipe("k", "none")
        assert [letter.value for letter in driver.dead_letters("out")] == [b"none"]


def test_a_handler_function_that_names_an_input_ends_the_thread() -> None:
    app = App("a", processing_handler=lambda failed: dead_letter(failed.topic or ""))
    read_one(app)
    message = r"'orders'\) for orders\[0\]@0: the application re"
    with (
        TopologyTestDriver(app, stores="memory") as driver,
        pytest.raises(StreamsError, match=message),
    ):
        driver.topic("orders").pipe("k", "none")


def test_a_handler_function_of_a_global_table_may_not_name_its_topic() -> None:
    app = App("a", deserialization_handler=lambda failed: dead_letter(failed.topic or ""))
    read_global_table(app)
    message = r"'rates'\) for rates\[0\]@0: the application read"
    with (
        TopologyTestDriver(app, stores="memory") as driver,
        pytest.raises(StreamsError, match=message),
    ):
        driver.topic("rates", value=serdes.bytes).pipe("k", b"\xff")
