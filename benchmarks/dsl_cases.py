"""The operators that `benchmarks.dsl` measures, each as an application of one or two steps."""

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
    """What is measured, and the topics that it reads: each record of each is one."""

    name: str
    describe: Callable[[App], object]
    topics: tuple[str, ...] = ("left",)


class Forwarding(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


class Unchanged(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        return value


def _rows(app: App, topic: str) -> Any:
    return app.table(topic, **_TEXT, store=_kept(f"of-{topic}", caching=True))


def _left(app: App) -> Any:
    return app.stream("left", **_TEXT)


def _kept(name: str, *, caching: bool) -> Store:
    return Store.in_memory(name, caching=caching)


def _ignored(key: object, value: object) -> None:
    """The end of a branch."""


CASES = [
    Case("for_each", lambda app: _left(app).for_each(_ignored)),
    Case("filter", lambda app: _left(app).filter(lambda k, v: True)),
    Case("map_values", lambda app: _left(app).map_values(lambda v: v)),
    Case("map", lambda app: _left(app).map(lambda k, v: (k, v))),
    Case("flat_map_values, one value", lambda app: _left(app).flat_map_values(lambda v: (v,))),
    Case("select_key", lambda app: _left(app).select_key(lambda k, v: v)),
    Case("peek", lambda app: _left(app).peek(_ignored)),
    Case("split in two", lambda app: _left(app).split({"a": lambda k, v: False}, default="b")),
    Case("ten map_values", lambda app: _chained(_left(app), 10)),
    Case("process", lambda app: _left(app).process(Forwarding)),
    Case("to", lambda app: _left(app).to("out")),
    Case("to, topic by a function", lambda app: _left(app).to(lambda record: "out")),
    Case("table, not kept", lambda app: app.table("left", **_TEXT).to_stream()),
    Case("table, kept", lambda app: app.table("left", **_TEXT, store=_kept("t", caching=True))),
    Case(
        "table.filter",
        lambda app: app.table("left", **_TEXT).filter(lambda k, v: True).to_stream(),
    ),
    Case("count", lambda app: _left(app).group_by_key().count(store=_kept("c", caching=True))),
    Case(
        "count, no caching",
        lambda app: _left(app).group_by_key().count(store=_kept("c", caching=False)).to_stream(),
    ),
    Case(
        "reduce",
        lambda app: _left(app).group_by_key().reduce(max, store=_kept("c", caching=True)),
    ),
    Case(
        "aggregate, an object changed in place",
        lambda app: (
            _left(app)
            .group_by_key()
            .aggregate(dict, _tally, value=serdes.json, store=_kept("c", caching=True))
        ),
    ),
    Case("count, tumbling windows", lambda app: _windowed(app, windows.tumbling(10_000))),
    Case(
        "count, tumbling windows, on close",
        lambda app: _windowed(app, windows.tumbling(10_000), emit="on_close"),
    ),
    Case("count, 4 hopping windows", lambda app: _windowed(app, windows.hopping(10_000, 2_500))),
    Case("count, sessions", lambda app: _windowed(app, windows.session(1_000))),
    Case(
        "count, sessions, on close",
        lambda app: _windowed(app, windows.session(1_000), emit="on_close"),
    ),
    Case("count, sliding windows", lambda app: _windowed(app, windows.sliding(1_000))),
    Case("join of streams, two partners", lambda app: _joined(app, "join"), ("left", "right")),
    Case("left_join of streams", lambda app: _joined(app, "left_join"), ("left", "right")),
    Case("join of a stream with itself", lambda app: _left(app).join(_left(app), _pair, within=1)),
    Case(
        "join with a table",
        lambda app: _left(app).join(app.table("right", **_TEXT), _pair),
        ("left", "right"),
    ),
    Case(
        "left_join with a versioned table and a grace",
        lambda app: _left(app).left_join(_versioned(app), _pair, grace=10_000),
        ("left", "right"),
    ),
    Case(
        "join of tables",
        lambda app: _rows(app, "left").join(_rows(app, "right"), _pair).to_stream(),
        ("left", "right"),
    ),
    Case(
        "group_by of a table, to the topic",
        lambda app: _rows(app, "left").group_by(lambda k, v: (v, k), **_TEXT).count(store="c"),
    ),
    Case(
        "transform_values, not kept",
        lambda app: app.table("left", **_TEXT).transform_values(Unchanged).to_stream(),
    ),
    Case("table and suppress for 10 s", lambda app: _suppressed(app)),
    Case("count, tumbling windows, and suppress", lambda app: _final(app)),
    Case("foreign-key join, a row that asks", lambda app: _foreign(app)),
]


def _suppressed(app: App) -> None:
    table = app.table("left", **_TEXT, store=_kept("t", caching=False))
    table.suppress(until_time_limit(10_000)).to_stream()


def _final(app: App) -> None:
    windowed = _left(app).group_by_key().windowed_by(windows.tumbling(10_000))
    counts = windowed.count(store=_kept("c", caching=True))
    counts.suppress(until_window_closes()).to_stream()


def _foreign(app: App) -> None:
    rows = app.table("left", **_TEXT, store=_kept("t", caching=False))
    others = app.table("right", **_TEXT)
    rows.join(others, _pair, foreign_key=_first_letter)


def _first_letter(key: str, value: str) -> str:
    return value[:1]


def _windowed(app: App, cut: Any, **how: Any) -> None:
    _left(app).group_by_key().windowed_by(cut).count(store=_kept("c", caching=True), **how)


def _joined(app: App, kind: str) -> None:
    # The records of one topic between two commits, 10 s of them, come before those of the other.
    join = getattr(_left(app), kind)
    join(app.stream("right", **_TEXT), _pair, within=5_000, grace=10_000)


def _versioned(app: App) -> Any:
    kept = Store.versioned("v", history=60_000, persistent=False)
    return app.table("right", **_TEXT, store=kept)


def _pair(value: str, other: str) -> tuple[str, str]:
    return value, other


def _chained(stream: Any, steps: int) -> None:
    for _ in range(steps):
        stream = stream.map_values(_same)


def _same(value: str) -> str:
    return value


def _tally(key: str, value: str, seen: dict[str, int]) -> dict[str, int]:
    seen["n"] = seen.get("n", 0) + 1
    return seen
