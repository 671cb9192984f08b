"""List the places at which a function of an operator fails, or its result is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams import App, Processor, Record, serdes
from tests.unit.streams.runtime.poison.operators import OPERATORS, TEXT, store
from tests.unit.streams.runtime.poison.places import (
    ERRORS,
    SURROGATE,
    Place,
    build_operator,
    build_step,
    write_poison,
)
from tests.unit.streams.runtime.poison.running import POISON

FOR_EACH_OPERATOR = ("ValueError", "StreamsError", "one that can't be shown")
WITH_ALL_ERRORS = ("flat_map_values, a generator", "process")


NAMES = {
    "cogroup": "bad-cogroup-agg-0",
    "join": "bad-this-join",
    "left_join": "bad-this-join",
    "outer_join": "bad-outer-this-join",
    "table.join": "bad-join-this",
    "table.left_join": "bad-join-this",
    "table.outer_join": "bad-join-this",
}
"""The names of steps that make several of one: as Kafka Streams names these."""


def list_operator_places() -> Iterator[Place]:
    """Yield a place for each operator and some errors of its function; for two, all errors."""
    for name in OPERATORS:
        for error, make in ERRORS.items():
            if error in FOR_EACH_OPERATOR or name in WITH_ALL_ERRORS:
                build, step = build_operator(name, make), NAMES.get(name, "bad")
                case = f"{name} raises {error}"
                yield Place(
                    *("operate", "exception", case, build, write_poison, "processing", step),
                    has_source=name != "after suppress",
                )


class _Changing(Processor[str, str, str, str]):
    """Forwards records, poison with what a subclass makes of it."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(self.change(record) if record.value == POISON else record)

    def change(self, record: Record[str, str]) -> Record[str, str]:
        raise NotImplementedError


def _changing(change: Callable[[Record[str, str]], Any]) -> Callable[[App], None]:
    class Changing(_Changing):
        def change(self, record: Record[str, str]) -> Any:
            return change(record)

    return build_step(lambda s: s.process(Changing, name="bad", **TEXT))


def list_other_operator_places() -> Iterator[Place]:
    """Yield places at which an operator itself refuses what the user's function returns."""
    refused: dict[str, Any] = {
        "map returns no pair": lambda s: s.map(
            lambda k, v: 7 if v == POISON else (k, v), name="bad", **TEXT
        ),
        "map returns three": lambda s: s.map(
            lambda k, v: (k, v, v) if v == POISON else (k, v), name="bad", **TEXT
        ),
        "flat_map returns no list": lambda s: s.flat_map(
            lambda k, v: 7 if v == POISON else [(k, v)], name="bad", **TEXT
        ),
        "flat_map_values returns no list": lambda s: s.flat_map_values(
            lambda v: 7 if v == POISON else [v], name="bad", value=serdes.string
        ),
    }
    for name, build in refused.items():
        yield Place(
            *("operate", "refused value", name, build_step(build), write_poison, "processing")
        )
    changes: dict[tuple[str, str], Any] = {
        ("negative time", "a processor's record"): lambda r: r.with_timestamp(-1),
        ("unreadable header", "a name with a surrogate"): lambda r: r.with_headers(
            [(SURROGATE, b"1")]
        ),
        ("unreadable header", "a name with a NUL"): lambda r: r.with_headers([("a\0b", b"1")]),
        ("unreadable header", "a name that is no text"): lambda r: r.with_headers([(b"a", b"1")]),
        ("unreadable header", "no pairs"): lambda r: r.with_headers([7]),
        ("undeclared type", "a record that is none"): lambda r: 7,
    }
    for (kind, name), change in changes.items():
        build_place = _changing(change)
        yield Place("operate", kind, name, build_place, write_poison, "processing")
    dropping: Any = lambda s: (  # noqa: E731
        s.select_key(lambda k, v: None if v == POISON else k, key=serdes.string)
        .group_by_key()
        .reduce(lambda a, b: a + b, store=store(), name="bad")
        .to_stream()
    )
    yield Place("operate", "null key", "reduce", build_step(dropping), write_poison, "dropped")
