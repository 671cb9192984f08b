"""Describe a place at which a record can fail, and provide what all places are built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from streams import App, StreamsError, serdes
from streams.errors import SerdeError
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.poison.operators import OPERATORS, TEXT
from tests.unit.streams.runtime.poison.running import IN, POISON, POISONED_KEY

TOO_LARGE, TEN_MB = "x" * 2_000_000, "x" * 10_000_000
SURROGATE = "\ud800"
"""A text that UTF-8 can't write."""


class Place(NamedTuple):
    """Holds an application that fails at one record, and who decides about that record.

    `handler` is `deserialization`, `processing` or `production`; "dropped" where the record is
    counted and no handler is asked; `step` is named by the
    error. `is_letter_fatal`: the record's dead letter is too large itself.
    """

    stage: str
    kind: str
    name: str
    build: Callable[[App], None]
    write: Callable[[Kafka, int], None]
    handler: str
    step: str = "bad"
    is_letter_fatal: bool = False
    has_source: bool = True
    """Whether key and value are known as they were read: a suppression keeps the place alone."""
    reaches_other_branch: bool = True
    """Whether the branch that does not fail gets the record."""


def write_poison(kafka: Kafka, time_ms: int) -> None:
    """Write the record whose value the functions below refuse."""
    kafka.append_record(IN, POISONED_KEY.encode(), POISON.encode(), time_ms, [("h", b"1")])


class CannotBeShown(Exception):
    """Raises when it is to be shown."""

    def __str__(self) -> str:
        raise ValueError("never shown")

    __repr__ = __str__


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def throw(error: BaseException) -> Any:
    raise error


ERRORS: dict[str, Callable[[], Any]] = {
    "ValueError": lambda: throw(ValueError("not this one")),
    "KeyError": lambda: throw(KeyError("not this one")),
    "StopIteration": lambda: throw(StopIteration("not this one")),
    "GeneratorExit": lambda: throw(RuntimeError("not this one")),
    "RecursionError": recurse,
    "AssertionError": lambda: throw(AssertionError()),
    "StreamsError": lambda: throw(StreamsError("not this one")),
    "SerdeError": lambda: throw(SerdeError("not this one")),
    "TimeoutError": lambda: throw(TimeoutError("not this one")),
    "BufferError": lambda: throw(BufferError("not this one")),
    "one that can't be shown": lambda: throw(CannotBeShown()),
    "a group": lambda: throw(ExceptionGroup("some", [ValueError("not this one")])),
}


def replacing(make: Callable[[], Any]) -> Callable[[Any], Any]:
    """Return a function that makes something else of poison, and upper case of the rest."""
    return lambda value: make() if value == POISON else value and value.upper()


def build_branches(app: App, finish: Callable[[Any], Any]) -> None:
    """Build a stream of `in` that goes to `after`, and through `finish` to `out`."""
    stream = app.stream("in", **TEXT, name="read")
    found = finish(stream)
    if found is not None:
        found.to("out", name="write", **TEXT)
    stream.to("after")


def build_operator(name: str, make: Callable[[], Any]) -> Callable[[App], None]:
    """Return what builds an application with an operator whose function makes poison this."""
    return lambda app: build_branches(app, lambda s: OPERATORS[name](app, s, replacing(make)))


def build_step(build: Any) -> Callable[[App], None]:
    """Return what builds an application with what `build` does to its stream."""
    return lambda app: build_branches(app, build)


def create_raising_serde(error: Callable[[], Any]) -> Any:
    """Return a serde of text that calls a function for poison, which raises."""

    def write(value: Any) -> bytes:
        return error() if value == POISON else serdes.string.serialize(value)

    def read(data: bytes) -> str:
        value = serdes.string.deserialize(data)
        return error() if value == POISON else value

    return serdes.of(write, read, name="raising")
