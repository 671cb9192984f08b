"""Test what is refused when a query of a store is registered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from streams import App, serdes
from streams.errors import ConfigError, QueryFailed, TopologyError
from streams.queries.store_calls import ARGUMENTS_SIZE_MAX, StoreCall
from streams.topology.store_queries import StoreQuery, list_results


def create_app() -> App:
    app = App("shop")
    app.table("prices", key=serdes.string, value=serdes.int64, store="prices")
    return app


def test_a_query_is_a_part_of_the_topology() -> None:
    app = create_app()

    @app.register_query("largest", "prices")
    def find_largest(prices: Any) -> Any:
        return max(price for _, price in prices.all())

    [query] = app.topology().queries
    assert (query.name, query.store, query.function) == ("largest", "prices", find_largest)
    assert query.merge([3, 5]) == [3, 5]


@pytest.mark.parametrize(
    ("name", "function", "reason"),
    [
        ("a name", lambda prices: 0, "a name"),
        ("largest", 5, "step 'query largest' needs a function"),
        ("largest", lambda: 0, r"takes \(\), and is called with a view of the store"),
        ("largest", lambda *, count: 0, r"is called with a view of the store"),
    ],
)
def test_what_is_no_query_is_refused(name: str, function: Any, reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        create_app().register_query(name, "prices")(function)


def test_a_merge_that_takes_no_results_is_refused() -> None:
    with pytest.raises(TopologyError, match="is called with the results of all tasks"):
        create_app().register_query("largest", "prices", merge=lambda: 0)


def test_a_query_of_a_store_that_there_is_not_and_one_that_is_there_twice_are_refused() -> None:
    app = create_app()
    app.register_query("largest", "price")(lambda prices: 0)
    with pytest.raises(TopologyError, match=r"of the store 'price'; there are \['prices'\]"):
        app.topology()
    with pytest.raises(TopologyError, match="registered twice"):
        app.register_query("largest", "prices")


def call(function: Callable[..., Any], **arguments: Any) -> StoreCall:
    return StoreCall(StoreQuery("largest", "prices", function, list_results), arguments)


def test_results_are_what_json_has_wherever_the_task_is() -> None:
    assert call(lambda rows, count: tuple(rows[:count]), count=1).call_function([(1, 2)]) == [
        [1, 2]
    ]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda rows: rows["x"], "largest' has failed: TypeError"),
        (lambda rows: {1, 2}, "not JSON serializable: set"),
        (lambda rows: (row for row in rows), "not JSON serializable: generator"),
    ],
)
def test_a_function_that_fails_is_named(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(QueryFailed, match=reason):
        call(function).call_function([])


def test_arguments_that_a_function_does_not_take_are_refused_before_it_is_called() -> None:
    call(lambda rows, count=1: 0, count=2).check_arguments()
    call(max).check_arguments()
    with pytest.raises(ConfigError, match=r"can't be called with {}: missing .* 'count'"):
        call(lambda rows, count: 0).check_arguments()


def test_each_call_gets_arguments_of_its_own_as_another_worker_would() -> None:
    asked = call(lambda rows, words: [words.pop(), words], words=["a", "b"])
    assert [asked.call_function([]) for _ in range(2)] == [["b", ["a"]]] * 2
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert call(lambda rows, at: at, at=at).call_function([]) == "2026-01-02T00:00:00+00:00"


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ({1, 2}, "not JSON serializable: set; arguments are what JSON has"),
        ({1: 2}, "must be str; arguments are what JSON has"),
        ("x" * ARGUMENTS_SIZE_MAX, "bytes in a URL, and may have 12000"),
    ],
)
def test_arguments_that_can_not_be_sent_are_refused(argument: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        call(lambda rows, ids: 0, ids=argument)


def test_arguments_that_a_merge_does_not_take_are_refused_before_the_function_is_called() -> None:
    query = StoreQuery("largest", "prices", lambda rows, count=1: count, lambda results: results)
    StoreCall(query, {}).check_arguments()
    with pytest.raises(ConfigError, match=r"merge of query 'largest' can't be called .* 'count'"):
        StoreCall(query, {"count": 2}).check_arguments()


def test_an_argument_may_have_any_name() -> None:
    def list_arguments(rows: Any, /, **arguments: Any) -> Any:
        return arguments

    names = {"results": 1, "query": 2, "self": 3, "store": 4}
    asked = call(list_arguments, **names)
    asked.check_arguments()
    assert asked.merge_results([asked.call_function([])]) == [names]
