"""Test that the examples in the docstrings of the public interface print what they show.

An example has the names of `streams` and `timedelta`, and what it imports. That of a method goes on
from the example of its class.
"""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

import streams
from streams import App, Store, TopologyTestDriver, serdes, windows
from streams.dsl.cogrouped import Cogrouped, WindowedCogroup
from streams.dsl.global_table import GlobalTable
from streams.dsl.grouped import Grouped
from streams.dsl.grouped_table import GroupedTable
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.dsl.topology_builder import TopologyBuilder
from streams.dsl.windowed import WindowedGroup
from streams.testing import DriverTopic

CLASSES = (
    App,
    Cogrouped,
    DriverTopic,
    GlobalTable,
    Grouped,
    GroupedTable,
    Store,
    Stream,
    Table,
    TopologyBuilder,
    TopologyTestDriver,
    WindowedCogroup,
    WindowedGroup,
)
CLASS_OF_FIRST_LINES = {WindowedCogroup: Cogrouped}
"""Classes whose examples go on from the example of another."""
FUNCTIONS = (
    *(
        getattr(windows, name)
        for name in ("hopping", "session", "sliding", "tumbling", "unlimited")
    ),
    *(getattr(serdes, name) for name in serdes.__all__),
    streams.until_time_limit,
    streams.until_window_closes,
)
WITHOUT_EXAMPLE = {
    "App.configure": "is called by commands",
    "App.run": "needs a broker",
    "App.start": "needs a broker",
    "Cogrouped.add_aggregations": "is for the DSL's classes",
    "Cogrouped.require_key_serde": "is for the DSL's classes",
    "Store.create_spec": "is for the DSL's classes",
    "TopologyTestDriver.close": "is called at the end of a with statement",
    "protobuf": "needs a class that protoc generates",
}
FLAGS = doctest.REPORT_NDIFF


def find_documented() -> Iterator[tuple[str, Any, Any]]:
    """Yield name, owner (None without one) and object of each member that needs an example."""
    for owner in CLASSES:
        for name, member in inspect.getmembers(owner):
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function):
                yield f"{owner.__name__}.{name}", owner, function
    for function in FUNCTIONS:
        if inspect.isfunction(function):
            yield function.__name__, None, function
    yield "JsonSerde", None, serdes.JsonSerde
    yield "Serde", None, serdes.Serde


DOCUMENTED = {name: (owner, member) for name, owner, member in find_documented()}


def run_example(name: str, member: Any, names: dict[str, Any]) -> str:
    """Run the example of a docstring with `names`, add its own, and return what is wrong."""
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(member) or "", names, name, inspect.getsourcefile(member), 0
    )
    reports: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=reports.append, clear_globs=False)
    names.update(test.globs)
    return "".join(reports)


def close_drivers(names: dict[str, Any]) -> None:
    """Close the drivers that an example has left open, as one without a with statement does."""
    for each in names.values():
        if isinstance(each, TopologyTestDriver):
            each.close()


def public_names() -> dict[str, Any]:
    """Return the names that every example has."""
    names = {name: getattr(streams, name) for name in streams.__all__}
    assert isinstance(names["windows"], ModuleType)
    return {**names, "timedelta": timedelta}


@pytest.mark.parametrize("name", sorted(DOCUMENTED.keys() - WITHOUT_EXAMPLE.keys()))
def test_an_example_prints_what_it_shows(name: str) -> None:
    owner, member = DOCUMENTED[name]
    assert ">>>" in (inspect.getdoc(member) or ""), f"{name} has no example"
    names = public_names()
    first_lines = CLASS_OF_FIRST_LINES.get(owner, owner)
    with ExitStack() as drivers:
        if first_lines is not None:
            assert not run_example(first_lines.__name__, first_lines, names)
            drivers.callback(close_drivers, names.copy())
        drivers.callback(close_drivers, names)
        assert not run_example(name, member, names)


def test_what_has_no_example_is_there_and_has_none() -> None:
    without = {name: DOCUMENTED[name][1] for name in WITHOUT_EXAMPLE}
    assert not [name for name, member in without.items() if ">>>" in (member.__doc__ or "")]


def test_an_example_that_prints_something_else_is_found() -> None:
    def add() -> None:
        """Add.

        >>> 1 + 1
        3
        """

    assert "Failed example:" in run_example("add", add, {})
