"""Test that a lambda which returns a coroutine or generator is refused, not taken for true."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from streams import App, Processor, Record, Store, StreamsError, serdes
from tests.unit.streams.bound import BoundTask

TEXT: Any = {"key": serdes.string, "value": serdes.string}
Steps = Callable[[Any, Callable[..., Any]], Any]


async def look_up(*arguments: Any) -> bool:
    return True


def produce_each(*arguments: Any) -> Iterator[str]:
    yield "v"


async def produce_later(*arguments: Any) -> AsyncIterator[str]:
    yield "v"


def _table(stream: Any) -> Any:
    return stream.to_table(store=Store.in_memory("t", caching=False))


def _returning(function: Callable[..., Any]) -> type[Processor[str, str, str, str]]:
    class Returning(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> Any:
            return function(record)

    return Returning


STEPS: dict[str, Steps] = {
    "filter": lambda s, f: s.filter(lambda k, v: f(k, v), name="bad"),
    "filter_not": lambda s, f: s.filter_not(lambda k, v: f(k, v), name="bad"),
    "peek": lambda s, f: s.peek(lambda k, v: f(k, v), name="bad"),
    "map_values": lambda s, f: s.map_values(lambda v: f(v), name="bad", value=serdes.string),
    "select_key": lambda s, f: s.select_key(lambda k, v: f(k, v), name="bad", key=serdes.string),
    "split": lambda s, f: s.split({"all": lambda k, v: f(k, v)}, name="bad")["all"],
    "process": lambda s, f: s.process(_returning(f), name="bad", **TEXT),
    "process_values": lambda s, f: s.process_values(_returning(f), name="bad", value=serdes.string),
    "table.filter": lambda s, f: _table(s).filter(lambda k, v: f(k, v), name="bad").to_stream(),
    "table.filter_not": lambda s, f: (
        _table(s).filter_not(lambda k, v: f(k, v), name="bad").to_stream()
    ),
    "table.map_values": lambda s, f: (
        _table(s).map_values(lambda v: f(v), name="bad", value=serdes.string).to_stream()
    ),
}


def through(steps: Steps, function: Callable[..., Any]) -> BoundTask:
    app = App("a")
    steps(app.stream("in", **TEXT), function).to("out", **TEXT)
    return BoundTask(app)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("function", "why"),
    [(look_up, "is async"), (produce_each, "yields"), (produce_later, "is async")],
)
@pytest.mark.parametrize("step", STEPS)
def test_a_lambda_whose_call_has_not_run_is_refused_at_its_first_result(
    step: str, function: Callable[..., Any], why: str
) -> None:
    task = through(STEPS[step], function)
    expected = f"what {function.__name__} has not run yet: that {why}, and nobody runs it"
    with pytest.raises(StreamsError, match=expected):
        task.pipe("k", "v")
    assert task.pairs == []


def test_a_coroutine_after_results_of_nothing_is_refused_too() -> None:
    results = iter([None, look_up()])
    app = App("a")
    app.stream("in", **TEXT).map_values(lambda v: next(results), name="bad").to("out")
    task = BoundTask(app)
    task.pipe("k", "v")
    with pytest.raises(StreamsError, match="nobody runs it"):
        task.pipe("k", "v")


@pytest.mark.parametrize("accepted", [1, "yes", [0]])
def test_a_predicate_may_return_what_is_only_true(accepted: Any) -> None:
    app = App("a")
    app.stream("in", **TEXT).filter(lambda k, v: accepted).to("out")
    task = BoundTask(app)
    task.pipe("k", "v")
    assert task.pairs == [(b"k", b"v")]
