"""List the operators that `benchmarks.dsl` measures, each in a small application of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from streams import (
    App,
    Processor,
    Record,
    Store,
    ValueTransformer,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)

TOPICS = {
    "left": (serdes.string, serdes.string),
    "right": (serdes.string, serdes.string),
}
_TEXT: Any = {"key": serdes.string, "value": serdes.string}


class Case(NamedTuple):
    """Describes an operator to measure, and its input topics, whose records all count."""

    name: str
    describe: Callable[[App], object]
    topics: tuple[str, ...] = ("left",)


class Forwarding(Processor[str, str, str, str]):
    """Forwards each record as it is."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


class Unchanged(ValueTransformer[str, str, str]):
    """Returns each value as it is."""

    def transform(self, key: str, value: str | None) -> str | None:
        return value


def _read_table(app: App, topic: str) -> Any:
    return app.table(topic, **_TEXT, store=_memory_store(f"of-{topic}", caching=True))


def _read_left(app: App) -> Any:
    return app.stream("left", **_TEXT)


def _memory_store(name: str, *, caching: bool) -> Store:
    return Store.in_memory(name, caching=caching)


def _ignore_record(key: object, value: object) -> None:
    """Do nothing with a record, at the end of a branch."""


CASES = [
    Case("for_each", lambda app: _read_left(app).for_each(_ignore_record)),
    Case("filter", lambda app: _read_left(app).filter(lambda k, v: True)),
    Case("map_values", lambda app: _read_left(app).map_values(lambda v: v)),
    Case("map", lambda app: _read_left(app).map(lambda k, v: (k, v))),
    Case(
        "map, to a topic", lambda app: _read_left(app).map(lambda k, v: (k, v), **_TEXT).to("out")
    ),
    Case("flat_map_values, one value", lambda app: _read_left(app).flat_map_values(lambda v: (v,))),
    Case("select_key", lambda app: _read_left(app).select_key(lambda k, v: v)),
    Case("peek", lambda app: _read_left(app).peek(_ignore_record)),
    Case("split in two", lambda app: _read_left(app).split({"a": lambda k, v: False}, default="b")),
    Case("ten map_values", lambda app: _chain_map_values(_read_left(app), 10)),
    Case("process", lambda app: _read_left(app).process(Forwarding)),
    Case("to", lambda app: _read_left(app).to("out")),
    Case("to, topic by a function", lambda app: _read_left(app).to(lambda record: "out")),
    Case("table, not kept", lambda app: app.table("left", **_TEXT).to_stream()),
    Case(
        "table, kept",
        lambda app: app.table("left", **_TEXT, store=_memory_store("t", caching=True)),
    ),
    Case(
        "table.filter",
        lambda app: app.table("left", **_TEXT).filter(lambda k, v: True).to_stream(),
    ),
    Case(
        "count",
        lambda app: _read_left(app).group_by_key().count(store=_memory_store("c", caching=True)),
    ),
    Case(
        "count, to a topic",
        lambda app: (
            _read_left(app)
            .group_by_key()
            .count(store=_memory_store("c", caching=True))
            .to_stream()
            .to("out")
        ),
    ),
    Case(
        "count, no caching",
        lambda app: (
            _read_left(app)
            .group_by_key()
            .count(store=_memory_store("c", caching=False))
            .to_stream()
        ),
    ),
    Case(
        "reduce",
        lambda app: (
            _read_left(app).group_by_key().reduce(max, store=_memory_store("c", caching=True))
        ),
    ),
    Case(
        "aggregate, an object changed in place",
        lambda app: (
            _read_left(app)
            .group_by_key()
            .aggregate(
                dict, _tally_in_place, value=serdes.json, store=_memory_store("c", caching=True)
            )
        ),
    ),
    Case("count, tumbling windows", lambda app: _count_in_windows(app, windows.tumbling(10_000))),
    Case(
        "count, tumbling windows, on close",
        lambda app: _count_in_windows(app, windows.tumbling(10_000), emit="on_close"),
    ),
    Case(
        "count, 4 hopping windows",
        lambda app: _count_in_windows(app, windows.hopping(10_000, 2_500)),
    ),
    Case("count, sessions", lambda app: _count_in_windows(app, windows.session(1_000))),
    Case(
        "count, sessions, on close",
        lambda app: _count_in_windows(app, windows.session(1_000), emit="on_close"),
    ),
    Case("count, sliding windows", lambda app: _count_in_windows(app, windows.sliding(1_000))),
    Case(
        "join of streams, two partners",
        lambda app: _join_streams(app, "join"),
        ("left", "right"),
    ),
    Case(
        "left_join of streams",
        lambda app: _join_streams(app, "left_join"),
        ("left", "right"),
    ),
    Case(
        "join of a stream with itself",
        lambda app: _read_left(app).join(_read_left(app), _join_as_pair, within=1),
    ),
    Case(
        "join with a table",
        lambda app: _read_left(app).join(app.table("right", **_TEXT), _join_as_pair),
        ("left", "right"),
    ),
    Case(
        "left_join with a versioned table and a grace",
        lambda app: _read_left(app).left_join(_versioned_table(app), _join_as_pair, grace=10_000),
        ("left", "right"),
    ),
    Case(
        "join of tables",
        lambda app: (
            _read_table(app, "left").join(_read_table(app, "right"), _join_as_pair).to_stream()
        ),
        ("left", "right"),
    ),
    Case(
        "group_by of a table, to the topic",
        lambda app: (
            _read_table(app, "left").group_by(lambda k, v: (v, k), **_TEXT).count(store="c")
        ),
    ),
    Case(
        "transform_values, not kept",
        lambda app: app.table("left", **_TEXT).transform_values(Unchanged).to_stream(),
    ),
    Case("table and suppress for 10 s", lambda app: _suppress_table(app)),
    Case("count, tumbling windows, and suppress", lambda app: _count_final_windows(app)),
    Case("foreign-key join, a row that asks", lambda app: _join_by_foreign_key(app)),
]


AIMED_CASES = {"map, to a topic": "map", "count, to a topic": "count"}
"""The cases for which `benchmarks.recording_levels` has aims, and their operators' names."""


def _suppress_table(app: App) -> None:
    table = app.table("left", **_TEXT, store=_memory_store("t", caching=False))
    table.suppress(until_time_limit(10_000)).to_stream()


def _count_final_windows(app: App) -> None:
    windowed = _read_left(app).group_by_key().windowed_by(windows.tumbling(10_000))
    counts = windowed.count(store=_memory_store("c", caching=True))
    counts.suppress(until_window_closes()).to_stream()


def _join_by_foreign_key(app: App) -> None:
    rows = app.table("left", **_TEXT, store=_memory_store("t", caching=False))
    others = app.table("right", **_TEXT)
    rows.join(others, _join_as_pair, foreign_key=_first_letter)


def _first_letter(key: str, value: str) -> str:
    return value[:1]


def _count_in_windows(app: App, cut: Any, **how: Any) -> None:
    _read_left(app).group_by_key().windowed_by(cut).count(
        store=_memory_store("c", caching=True), **how
    )


def _join_streams(app: App, kind: str) -> None:
    # Between two commits all records of one topic, 10 s of them, come before those of the other.
    join = getattr(_read_left(app), kind)
    join(app.stream("right", **_TEXT), _join_as_pair, within=5_000, grace=10_000)


def _versioned_table(app: App) -> Any:
    kept = Store.versioned("v", history=60_000, persistent=False)
    return app.table("right", **_TEXT, store=kept)


def _join_as_pair(value: str, other: str) -> tuple[str, str]:
    return value, other


def _chain_map_values(stream: Any, steps: int) -> None:
    for _ in range(steps):
        stream = stream.map_values(_return_unchanged)


def _return_unchanged(value: str) -> str:
    return value


def _tally_in_place(key: str, value: str, seen: dict[str, int]) -> dict[str, int]:
    seen["n"] = seen.get("n", 0) + 1
    return seen
