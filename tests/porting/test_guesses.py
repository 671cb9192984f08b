"""Test that what a Java developer guesses is there, or is refused with what to write instead.

All classes and methods of Kafka Streams' public list are guessed, in Java's spelling and in
Python's, and calls with arguments as one would give them to Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

import pytest

import millrace
from millrace import (
    App,
    Processor,
    Record,
    Store,
    TopologyTestDriver,
    Windowed,
    serdes,
    windows,
)
from millrace.testing import MockProcessorContext
from streams.errors import UserError
from streams.processes.running import RunningApp
from tests.porting.api.java_api import load_kept_api
from tests.porting.api.page import find_counterpart, spell_in_python
from tests.sampling import draw_seed

API = load_kept_api()
GUESSES = 400
TEXT: Any = {"key": serdes.string, "value": serdes.string}


class Identity(Processor[Any, Any, Any, Any]):
    """Forwards each record as it is."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class Objects:
    """Makes an object of each class whose names are guessed."""

    def __init__(self) -> None:
        self.app: Any = App("guessed")
        app = self.app
        stream, table = app.stream("in", **TEXT), app.table("rows", **TEXT)
        grouped = stream.group_by_key()
        windowed = grouped.windowed_by(windows.tumbling(timedelta(minutes=5)))
        cogrouped: Any = grouped.cogroup(lambda key, value, total: total)
        stores = (
            Store.persistent("counts", **TEXT),
            Store.window("windows", size=1, retention=1, **TEXT),
            Store.session("sessions", retention=1, **TEXT),
            Store.versioned("versions", history=1, **TEXT),
        )
        self.mock: Any = MockProcessorContext(stores)
        self.dsl: list[Any] = [
            app,
            stream,
            table,
            grouped,
            windowed,
            cogrouped,
            cogrouped.windowed_by(windows.tumbling(timedelta(minutes=5))),
            table.group_by(lambda key, value: (key, value), **TEXT),
            app.global_table("all", **TEXT),
            app.topology_builder(),
        ]
        self.contexts: list[Any] = []
        """The context of a processor, once the application runs."""
        contexts = self.contexts

        class Kept(Identity):
            def init(self, context: Any) -> None:
                contexts.append(context)

        stream.process(Kept)
        self.others: list[Any] = [
            RunningApp.__new__(RunningApp),
            Record("k", "v", 0),
            Windowed("k", 0, 1),
            *map(self.mock.store, ("counts", "windows", "sessions", "versions")),
        ]


@pytest.fixture
def objects() -> Objects:
    return Objects()


def list_top_classes() -> list[str]:
    """Return the names of the classes that are in no other."""
    return sorted({each.rpartition(".")[2] for each in API if "$" not in each})


@pytest.mark.parametrize("name", list_top_classes())
def test_an_import_of_a_class_finds_it_or_says_what_replaces_it(name: str) -> None:
    if name in millrace.__all__:
        return
    with pytest.raises(ImportError, match=f"millrace has no '{name}': .{{5}}"):
        getattr(import_module("millrace"), name)


OF_STORES_FROM_OUTSIDE = {"readOnly"}
"""Methods of Kafka Streams' stores that no processor calls."""


def list_methods(owner: Any) -> Iterator[str]:
    """Yield the names of Kafka Streams' methods that an object's class has counterparts of."""
    for java_class, methods in API.items():
        _, counterpart = find_counterpart(java_class)
        if not set(type(owner).__mro__).isdisjoint(counterpart.python):
            yield from (each for each in methods if each not in OF_STORES_FROM_OUTSIDE)


def is_explained(error: Exception) -> bool:
    """Return whether an error says what to write, which those that Python raises do not."""
    if isinstance(error, UserError | ValueError):
        return True
    return isinstance(error, AttributeError | TypeError) and "': " in str(error)


def test_each_method_is_there_or_what_replaces_it_is_said(objects: Objects) -> None:
    guessed, bare = 0, []
    with TopologyTestDriver(objects.app, stores="memory") as driver:
        context = objects.contexts[0]
        for owner in (*objects.dsl, *objects.others, driver, driver.topic("in"), context):
            for method in list_methods(owner):
                for name in {method, spell_in_python(method)}:
                    guessed += 1
                    try:
                        getattr(owner, name)
                    except AttributeError as error:
                        if not is_explained(error):
                            bare.append(str(error))
    for method in API["processor.api.MockProcessorContext"]:
        for name in {method, spell_in_python(method)} - {"metrics"}:
            caught = catch_error(partial(getattr, objects.mock, name))
            if caught is not None and not is_explained(caught):
                bare.append(str(caught))
    assert not bare, "\n".join(bare)
    assert guessed > 250


NOT_CALLED = {"run", "start", "configure", "add_aggregations", "require_key_serde"}
"""Methods that run an application, and those that only other classes call."""
JAVA_ARGUMENTS = [
    "as_",
    "consumed",
    "grouped",
    "joined",
    "joinWindows",
    "keySerde",
    "key_serde",
    "materialized",
    "named",
    "numPartitions",
    "produced",
    "repartitioned",
    "resetPolicy",
    "store_name",
    "streamJoined",
    "stream_partitioner",
    "timestampExtractor",
    "topics",
    "valueSerde",
    "value_joiner",
    "window",
]


def draw_arguments(rng: Random, objects: Objects) -> tuple[list[Any], dict[str, Any]]:
    """Draw arguments as a Java developer may give them."""
    app = objects.app
    pool: list[Any] = [
        "name",
        serdes.string,
        Store.in_memory("kept"),
        lambda key, value: value,
        lambda value: value,
        lambda: 0,
        timedelta(minutes=1),
        Identity,
        windows.session(timedelta(minutes=1)),
        app.stream("in", **TEXT),
        app.table(f"rows{rng.randrange(10**9)}", **TEXT),
        {"small": lambda key, value: True},
        None,
        7,
    ]
    given = [rng.choice(pool) for _ in range(rng.randrange(5))]
    named = rng.sample(JAVA_ARGUMENTS, rng.randrange(3))
    return given, {name: rng.choice(pool) for name in named}


def test_calls_as_of_kafka_streams_work_or_say_which_arguments_there_are(objects: Objects) -> None:
    seed = draw_seed("guessed calls")
    print(f"{seed=}")
    rng = Random(seed)
    for _ in range(GUESSES):
        owner = rng.choice(objects.dsl)
        names = [n for n in dir(owner) if not n.startswith("_")]
        names = [n for n in names if n not in NOT_CALLED]
        method = getattr(owner, rng.choice(names))
        if not callable(method):
            continue
        given, named = draw_arguments(rng, objects)
        error = catch_error(lambda: method(*given, **named))  # noqa: B023  called at once
        assert error is None or is_explained(error), (
            f"{owner!r}.{method.__name__} {given} {named}: {error!r}"
        )


def catch_error(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None
