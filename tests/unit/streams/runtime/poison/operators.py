"""Build an application for each kind of operator, in which the user's function is given.

Each reads `in` (and `other`, a table or a stream with the same keys), and returns what is to be
written to `out`. The operator that calls the function is named `bad`. Foreign-key joins are left
out: how many updates they let through depends on when the answers of the other table come.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from streams import (
    App,
    Processor,
    Record,
    Store,
    ValueTransformer,
    serdes,
    until_time_limit,
    windows,
)

TEXT: Any = {"key": serdes.string, "value": serdes.string}
Function = Callable[[Any], Any]
Build = Callable[[App, Any, Function], Any]
"""Is given the application, the stream of `in`, and the function of a value."""


def milliseconds(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def store(**more: Any) -> Store:
    return Store.in_memory("s", caching=False, **more)


def _processor(call: Function) -> Callable[[], Any]:
    class Calling(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.with_value(call(record.value)))

    return Calling


def _putting(call: Function) -> Callable[[], Any]:
    class Putting(Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.store = context.store("s")

        def process(self, record: Record[str, str]) -> None:
            self.store.put(record.key, call(record.value))
            self.context.forward(record)

    return Putting


def _transformer(app: App, s: Any, f: Function) -> Any:
    return s.process_values(_processor(f), name="bad", value=serdes.string)


def _with_store(app: App, s: Any, f: Function) -> Any:
    app.add_store(store(**TEXT))
    return s.process(_putting(f), stores=["s"], name="bad", **TEXT)


def _join(app: App, s: Any, f: Function, how: str) -> Any:
    other = app.stream("other", **TEXT)
    join = getattr(s, how)
    return join(
        other,
        lambda one, two: f(one),
        within=milliseconds(1_000),
        grace=milliseconds(0),
        value=serdes.string,
        name="bad",
    )


def _split(app: App, s: Any, f: Function) -> Any:
    return s.split({"all": lambda k, v: bool(f(v))}, name="bad")["all"]


def _other_table(app: App) -> Any:
    return app.table("other", **TEXT, store=Store.in_memory("o", caching=False))


def _table(s: Any) -> Any:
    return s.to_table(store=Store.in_memory("t", caching=False))


def _cogroup(app: App, s: Any, f: Function) -> Any:
    grouped = s.group_by_key().cogroup(lambda k, v, a: a + f(v))
    return grouped.aggregate(str, value=serdes.string, store=store(), name="bad").to_stream()


def _windowed(app: App, s: Any, f: Function, kind: Any) -> Any:
    grouped = s.group_by_key().windowed_by(kind)
    more: Any = {"merger": lambda k, a, b: a + b} if "ession" in type(kind).__name__ else {}
    table = grouped.aggregate(
        str, lambda k, v, a: a + f(v), **more, value=serdes.string, store=store(), name="bad"
    )
    return table.to_stream().map(lambda k, v: (k.key, v), **TEXT)


def _suppress(app: App, s: Any, f: Function) -> Any:
    """Return what follows a suppression: its function is called when an update is let go on."""
    table = s.group_by_key().reduce(lambda a, b: a + b, store=store())
    held = table.suppress(until_time_limit(0), name="held")
    return held.to_stream().map_values(lambda v: f(v[-6:]), name="bad", value=serdes.string)


def _transform_values(app: App, s: Any, f: Function) -> Any:
    class Transforming(ValueTransformer[str, str, str]):
        def transform(self, key: str, value: str | None) -> str | None:
            changed: str | None = f(value)
            return changed

    return _table(s).transform_values(Transforming, name="bad", value=serdes.string).to_stream()


def _group_table(app: App, s: Any, f: Function) -> Any:
    grouped = _table(s).group_by(lambda k, v: ((f(v), k)[1], v), name="bad", **TEXT)
    return grouped.reduce(lambda a, b: b, lambda a, b: a, store=store()).to_stream()


OPERATORS: dict[str, Build] = {
    "filter": lambda app, s, f: s.filter(lambda k, v: bool(f(v)), name="bad"),
    "filter_not": lambda app, s, f: s.filter_not(lambda k, v: not f(v), name="bad"),
    "map": lambda app, s, f: s.map(lambda k, v: (k, f(v)), name="bad", **TEXT),
    "map_values": lambda app, s, f: s.map_values(f, name="bad"),
    "flat_map": lambda app, s, f: s.flat_map(lambda k, v: [(k, f(v))], name="bad", **TEXT),
    "flat_map_values": lambda app, s, f: s.flat_map_values(lambda v: [f(v)], name="bad"),
    "flat_map_values, a generator": lambda app, s, f: s.flat_map_values(
        lambda v: (f(each) for each in [v]), name="bad"
    ),
    "select_key": lambda app, s, f: s.select_key(
        lambda k, v: (f(v), k)[1], name="bad", key=serdes.string
    ),
    "peek": lambda app, s, f: s.peek(lambda k, v: f(v), name="bad"),
    "for_each": lambda app, s, f: s.for_each(lambda k, v: f(v), name="bad"),
    "split": _split,
    "process": lambda app, s, f: s.process(_processor(f), name="bad", **TEXT),
    "process_values": _transformer,
    "process, with a store": _with_store,
    "group_by": lambda app, s, f: (
        s.group_by(lambda k, v: (f(v), k)[1], name="bad", key=serdes.string)
        .reduce(lambda a, b: a + b, store=store())
        .to_stream()
    ),
    "reduce": lambda app, s, f: (
        s.group_by_key().reduce(lambda a, b: a + f(b), store=store(), name="bad").to_stream()
    ),
    "aggregate": lambda app, s, f: (
        s.group_by_key()
        .aggregate(str, lambda k, v, a: a + f(v), value=serdes.string, store=store(), name="bad")
        .to_stream()
    ),
    "cogroup": _cogroup,
    "tumbling windows": lambda app, s, f: _windowed(
        app, s, f, windows.tumbling(milliseconds(10), grace=milliseconds(100))
    ),
    "sliding windows": lambda app, s, f: _windowed(
        app, s, f, windows.sliding(milliseconds(10), grace=milliseconds(100))
    ),
    "sessions": lambda app, s, f: _windowed(
        app, s, f, windows.session(milliseconds(5), grace=milliseconds(100))
    ),
    "join": lambda app, s, f: _join(app, s, f, "join"),
    "left_join": lambda app, s, f: _join(app, s, f, "left_join"),
    "outer_join": lambda app, s, f: _join(app, s, f, "outer_join"),
    "join with a table": lambda app, s, f: s.join(
        _other_table(app), lambda one, two: f(one), value=serdes.string, name="bad"
    ),
    "left_join with a table": lambda app, s, f: s.left_join(
        _other_table(app), lambda one, two: f(one), value=serdes.string, name="bad"
    ),
    "after suppress": _suppress,
    "table.transform_values": _transform_values,
    "table.group_by": _group_table,
    "table.map_values": lambda app, s, f: (
        _table(s).map_values(f, name="bad", value=serdes.string).to_stream()
    ),
    "table.filter": lambda app, s, f: (
        _table(s).filter(lambda k, v: bool(f(v)), name="bad").to_stream()
    ),
    "table.join": lambda app, s, f: (
        _table(s)
        .join(_other_table(app), lambda one, two: f(one), value=serdes.string, name="bad")
        .to_stream()
    ),
    "table.left_join": lambda app, s, f: (
        _table(s)
        .left_join(_other_table(app), lambda one, two: f(one), value=serdes.string, name="bad")
        .to_stream()
    ),
    "table.outer_join": lambda app, s, f: (
        _table(s)
        .outer_join(_other_table(app), lambda one, two: f(one), value=serdes.string, name="bad")
        .to_stream()
    ),
}
