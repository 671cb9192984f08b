"""Test that a call whose arguments don't fit says which there are, and what Java's are called."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import App, Store, TopologyError, serdes, topics, until_time_limit, windows
from streams.common.call_hints import explain_call
from streams.settings.config import StreamsConfig

TEXT: Any = {"key": serdes.string, "value": serdes.string}


@pytest.fixture
def app() -> Any:
    return App("hints")


@pytest.fixture
def stream(app: Any) -> Any:
    return app.stream("in", **TEXT)


def explain(call: Any) -> str:
    with pytest.raises(TopologyError) as refused:
        call()
    return str(refused.value)


def test_a_builder_object_of_java_is_said_with_the_arguments_of_the_method(stream: Any) -> None:
    told = explain(lambda: stream.filter(lambda key, value: True, named="x"))
    assert told == (
        "Stream.filter takes no named= (here it is name=): its arguments are (predicate, *, key=, "
        "value=, name=)"
    )
    assert "(here it is key=, value=, partitioner= and name=)" in explain(
        lambda: stream.to("out", produced=None)
    )
    assert "(here it is partitions=)" in explain(lambda: stream.repartition(numberOfPartitions=3))


def test_what_is_given_by_position_is_said_with_its_name(app: Any, stream: Any) -> None:
    told = explain(lambda: stream.map_values(str, "name"))
    assert "takes 1 argument by position (the others are given by name, as name=)" in told
    table, rates = app.table("rows", **TEXT), app.global_table("rates", **TEXT)
    join = "Stream.join takes 2 arguments by position (what finds the row of a global table is key="
    assert join in explain(lambda: stream.join(rates, max, lambda key, value: key))
    assert "(a foreign key is foreign_key=lambda" in explain(
        lambda: table.join(app.table("others", **TEXT), lambda key, value: value, max)
    )


def test_more_topics_than_one_are_a_list_where_a_method_takes_several(
    app: Any, stream: Any
) -> None:
    """`name=` would name the step, and the other topic would never be read."""
    told = explain(lambda: app.stream("orders", "returns"))
    assert "(several topics are one list: [topic, topic])" in told
    assert "by name" not in told
    assert "(several topics are one list" in explain(
        lambda: app.stream("orders", topics.matching("returns-.*"))
    )
    assert "(it takes one topic: call it once for each)" in explain(lambda: stream.to("a", "b"))
    assert "as store= and name=" in explain(lambda: app.table("rows", "kept"))
    assert "as key=" in explain(lambda: app.stream("orders", serdes.string))


def test_what_is_missing_or_given_twice_is_named(app: Any, stream: Any) -> None:
    assert "Stream.join needs joiner: its arguments are (other, joiner, *, with_key=" in explain(
        lambda: stream.join(stream)
    )
    assert "is given topic twice" in explain(lambda: app.stream("in", topic="in"))


def test_an_option_that_will_not_come_says_why(app: Any) -> None:
    told = explain(lambda: app.global_table("rates", **TEXT, offset_reset="latest"))
    assert "takes no offset_reset= (a global table is always read from its first record)" in told


def test_an_option_that_is_a_setting_is_named_as_one(app: Any) -> None:
    setting = "(it is a setting: App(..., uncaught_exception_handler=...))"
    assert setting in explain(lambda: app.start(uncaught_exception_handler=print))
    assert setting in explain(lambda: app.run(uncaught_exception_handler=print))


def test_an_option_of_another_join_is_said_with_that_of_java(app: Any, stream: Any) -> None:
    told = explain(lambda: stream.join(app.table("rows", **TEXT), max, joined=None))
    assert "with a table, and takes no joined (here it is key=, this_value=, value= and gr" in told


_Store: Any = Store
_App: Any = App
_windows: Any = windows
_until_time_limit: Any = until_time_limit


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: _windows.tumbling(), "tumbling needs size"),
        (lambda: _windows.session(inactivity_gap=1), "(here it is gap=)"),
        (lambda: _until_time_limit(timedelta(1), 10), "takes 1 argument by position"),
        (lambda: _Store.persistent("x", serdes.string), "as key= and value="),
        (lambda: _App("x", StreamsConfig()), "App takes 1 argument by position"),
    ],
)
def test_functions_and_constructors_explain_calls_too(call: Any, part: str) -> None:
    assert part in explain(call)


def test_an_error_of_the_function_itself_is_left_as_it_is() -> None:
    def fail(count: int) -> int:
        return count + None  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        explain_call(fail)(1)


def test_a_function_without_arguments_explains_calls_too() -> None:
    def count_calls() -> int:
        return 1

    call: Any = explain_call(count_calls)
    assert "takes 0 arguments by position: its arguments are ()" in explain(lambda: call("x"))


@pytest.mark.parametrize("argument", ["keyMapper", "key_mapping", "key_selector"])
def test_what_chooses_a_key_is_named_as_the_method_names_it(stream: Any, argument: str) -> None:
    given = {argument: lambda key, value: value}
    assert "(here it is selector= and key=)" in explain(lambda: stream.group_by(**given))
