"""List the places at which a sink's serdes, its functions or the producer refuse a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams import App, Processor, Record, Store, serdes
from tests.unit.streams.runtime.poison.operators import TEXT
from tests.unit.streams.runtime.poison.places import (
    ERRORS,
    SURROGATE,
    TEN_MB,
    TOO_LARGE,
    Place,
    build_step,
    create_raising_serde,
    replacing,
    write_poison,
)
from tests.unit.streams.runtime.poison.running import POISON

Make = Callable[[], Any]


def _ending(finish: Callable[[Any, Make], None], make: Make) -> Callable[[App], None]:
    """Return what builds an application whose stream `finish` writes to `out`."""

    def build(app: App) -> None:
        stream = app.stream("in", **TEXT, name="read")
        finish(stream, make)
        stream.to("after")

    return build


def _mapped(stream: Any, make: Make) -> Any:
    return stream.map_values(replacing(make), value=serdes.string)


def _write_key(stream: Any, make: Make) -> None:
    mapped = stream.map(lambda k, v: (make() if v == POISON else k, v), **TEXT)
    mapped.to("out", name="bad")


def _write_to_chosen_topic(stream: Any, make: Make) -> None:
    _mapped(stream, make).to(lambda record: "out", name="bad", **TEXT)


def _write_to_repartition(stream: Any, make: Make) -> None:
    _mapped(stream, make).repartition(name="bad").to("out")


def _choose_topic(stream: Any, make: Make) -> None:
    stream.to(lambda record: make() if record.value == POISON else "out", name="bad", **TEXT)


def _choose_partition(stream: Any, make: Make) -> None:
    choose: Any = lambda k, v, count: make() if v == POISON else 0  # noqa: E731
    stream.to("out", partitioner=choose, name="bad")


SINKS: dict[str, Callable[[Any, Make], None]] = {
    "value": lambda stream, make: _mapped(stream, make).to("out", name="bad"),
    "key": _write_key,
    "value, the topic chosen by a function": _write_to_chosen_topic,
    "value, to a repartition topic": _write_to_repartition,
}
REFUSED: dict[tuple[str, str], Make] = {
    ("serialise", "refused value"): lambda: SURROGATE,
    ("serialise", "undeclared type"): object,
    ("produce", "too large"): lambda: TOO_LARGE,
    ("produce", "10 MB"): lambda: TEN_MB,
}
CHOICES: dict[str, tuple[str, Callable[[Any, Make], None], tuple[Any, ...]]] = {
    "a partitioner": ("refused value", _choose_partition, (99, -7, "x", 1.5)),
    "a function": ("illegal topic", _choose_topic, (None, 7, b"out", "", "..", "a/b", "x" * 250)),
    "a function, of topics that do not exist": ("illegal topic", _choose_topic, ("nowhere",)),
}


def list_writing_places() -> Iterator[Place]:
    """Yield each kind of sink with each kind of record that it can't write."""
    for (stage, kind), make in REFUSED.items():
        for name, finish in SINKS.items():
            step = "bad-repartition-sink" if "repartition" in name else "bad"
            build = _ending(finish, make)
            yield Place(stage, kind, name, build, write_poison, "production", step)
    for error, make in ERRORS.items():
        serde = create_raising_serde(make)
        build = _ending(lambda s, _, serde=serde: s.to("out", value=serde, name="bad"), make)  # type: ignore[misc]
        name = f"a serde raises {error}"
        yield Place("serialise", "exception", name, build, write_poison, "production")
        for role, finish in (("topic", _choose_topic), ("partitioner", _choose_partition)):
            name, build = f"a {role}'s function raises {error}", _ending(finish, make)
            yield Place("produce", "exception", name, build, write_poison, "production")
    for role, (kind, finish, chosen) in CHOICES.items():
        for each in chosen:
            build = _ending(finish, lambda each=each: each)  # type: ignore[misc]
            name = f"{role} chooses {each!r:.20}"
            yield Place("produce", kind, name, build, write_poison, "production")
    yield from _list_refused_deliveries()
    numbered = build_step(lambda s: s.process(_Numbering, name="bad", **TEXT))
    yield Place(
        *("produce", "unreadable header", "a value that is no bytes", numbered, write_poison),
        *("production", "write"),
    )


def _list_refused_deliveries() -> Iterator[Place]:
    """Yield sinks of topics whose brokers refuse a record without a key: they are compacted."""

    def lose_key(stream: Any) -> Any:
        return stream.map(lambda k, v: (None if v == POISON else k, v), **TEXT)

    finishes: dict[str, Callable[[Any, Make], None]] = {
        "a fixed topic": lambda stream, make: lose_key(stream).to("out", name="bad"),
        "a topic chosen by a function": lambda stream, make: lose_key(stream).to(
            lambda record: "out", name="bad", **TEXT
        ),
        "a topic behind a table": lambda stream, make: (
            stream.to_table(store=Store.in_memory("t", caching=False))
            .to_stream()
            .map(lambda k, v: (None if v == POISON else k, v), **TEXT)
            .to("out", name="bad")
        ),
    }
    for name, finish in finishes.items():
        build = _ending(finish, object)
        yield Place("produce", "null key", name, build, write_poison, "production")


class _Numbering(Processor[str, str, str, str]):
    """Gives poison a header whose value is a number."""

    def process(self, record: Record[str, str]) -> None:
        headers: Any = [("a", 1)]
        is_poison = record.value == POISON
        self.context.forward(record.with_headers(headers) if is_poison else record)
