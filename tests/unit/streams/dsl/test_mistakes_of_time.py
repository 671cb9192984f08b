"""Test that mistakes with windows, joins, tables and the wrong kind of object are refused."""

from __future__ import annotations

from copy import copy
from datetime import timedelta
from typing import Any

import pytest

from streams import (
    App,
    Store,
    TopologyTestDriver,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.dsl.cogrouped import Cogrouped, WindowedCogroup
from streams.dsl.global_table import GlobalTable
from streams.dsl.grouped import Grouped
from streams.dsl.grouped_table import GroupedTable
from streams.dsl.kafka_streams_names import ALTERNATIVES
from streams.dsl.stream import Stream
from streams.dsl.table import Table as RowsTable
from streams.dsl.topology_builder import TopologyBuilder
from streams.dsl.windowed import WindowedGroup
from streams.processes.running import RunningApp
from streams.testing.topic import DriverTopic
from tests.unit.streams.dsl.mistakes import TEXT, Table, grouped, lines, provoke_refusal, rows

MINUTE = timedelta(minutes=1)


def other(app: App) -> Any:
    return app.stream("other", **TEXT, name="other")


def first(value: Any, other_value: Any) -> Any:
    return value


def windowed(app: App, cut: Any = None) -> Any:
    return grouped(app).windowed_by(cut or windows.tumbling(MINUTE))


def untyped(app: App | RunningApp) -> Any:
    """Return what is given for a name that a type checker would refuse."""
    return app


def by_value(app: App) -> Any:
    return rows(app).group_by(lambda key, value: (value, key), **TEXT)


def everywhere(app: App) -> Any:
    return app.global_table("rates", **TEXT, name="rates")


def folded(key: Any, value: Any, aggregate: Any) -> Any:
    return aggregate


def together(app: App) -> Any:
    return grouped(app).cogroup(folded)


def versioned(app: App) -> Any:
    return app.table("rows", **TEXT, store=Store.versioned("v", history=5))


WINDOWS: Table = {
    "a window of no size": (
        lambda app: windows.tumbling(0),
        ("windows.tumbling: size=0 must be at least 1 ms",),
    ),
    "a window of a size below 0": (
        lambda app: windows.tumbling(-MINUTE),
        ("windows.tumbling: size can't be negative: -60000 ms",),
    ),
    "a window of seconds in words": (
        lambda app: windows.tumbling("5m"),  # type: ignore[arg-type]
        ("windows.tumbling: size='5m' is neither milliseconds nor a timedelta",),
    ),
    "a grace below 0": (
        lambda app: windows.tumbling(5, grace=-1),
        ("windows.tumbling: grace can't be negative: -1 ms",),
    ),
    "windows with gaps between them": (
        lambda app: windows.hopping(5, advance=6),
        ("advance is 6 ms and size 5 ms", "Make advance at most size"),
    ),
    "windows that don't advance": (
        lambda app: windows.hopping(5, advance=0),
        ("windows.hopping: advance=0 must be at least 1 ms",),
    ),
    "a session's gap below 0": (
        lambda app: windows.session(-1),
        ("windows.session: gap can't be negative",),
    ),
    "a difference below 0": (
        lambda app: windows.sliding(-1),
        ("windows.sliding: difference can't be negative",),
    ),
    "a beginning before 1970": (
        lambda app: windows.unlimited(-1),
        ("windows.unlimited: start=-1 is not a time",),
    ),
    "a duration for windows": (
        lambda app: grouped(app).windowed_by(MINUTE),
        ("windowed_by(datetime.timedelta(seconds=60))", "windows.tumbling"),
    ),
    "an emission of no kind": (
        lambda app: windowed(app).count(emit="close", name="c"),
        ("step 'c': emit='close' is neither 'on_update' nor 'on_close'",),
    ),
    "the close of what never closes": (
        lambda app: (
            windowed(app, windows.unlimited())
            .count()
            .filter(lambda key, count: count > 1)
            .suppress(until_window_closes(), name="s")
        ),
        ("step 's' waits until windows close", "windows.unlimited(), never closes"),
    ),
    "the emission on close of what never closes": (
        lambda app: windowed(app, windows.unlimited()).count(emit="on_close", name="c"),
        ("step 'c': emit='on_close' with windows.unlimited()", "never closes"),
    ),
    "the close of idle windows on update": (
        lambda app: windowed(app, windows.tumbling(5, idle_close=9)).count(name="c"),
        ("step 'c': idle_close= closes idle windows", "take emit='on_close'"),
    ),
    "windows kept for less than their grace": (
        lambda app: windowed(app).count(store=Store.persistent("w", retention=5), name="c"),
        ("store 'w' of step 'c' keeps its windows for 5 ms", "make retention= at least"),
    ),
    "windows kept in sessions": (
        lambda app: windowed(app).count(store=Store.session("s", retention=5), name="c"),
        ("step 'c' needs a window", "'s' is a session store"),
    ),
    "sessions kept in windows": (
        lambda app: windowed(app, windows.session(5)).count(
            store=Store.window("w", size=5, retention=50), name="c"
        ),
        ("step 'c' needs a session", "'w' is a window store"),
    ),
    "a window's store of another size": (
        lambda app: windowed(app).count(
            store=Store.window("w", size=5, retention=MINUTE), name="c"
        ),
        ("store 'w' of step 'c' is for windows of 5 ms", "the step's are of 60000 ms"),
    ),
    "sessions that can't be joined": (
        lambda app: windowed(app, windows.session(5)).aggregate(
            list, lambda k, v, a: a, value=serdes.json, name="c"
        ),
        ("step 'c' aggregates sessions", "give merger="),
    ),
    "a merger without sessions": (
        lambda app: windowed(app).aggregate(
            list, lambda k, v, a: a, merger=lambda k, a, b: a, value=serdes.json, name="c"
        ),
        ("step 'c' has a merger, which is for sessions",),
    ),
    "a hook for late records with key and value": (
        lambda app: windowed(app).count(on_late=lambda key, value: None, name="c"),
        ("step 'c' calls its function with (late)",),
    ),
    "final results without windows": (
        lambda app: rows(app).suppress(until_window_closes(), name="s"),
        ("step 's' waits until windows close", "windowed_by(...) before it", "until_time_limit"),
    ),
    "a time for what is suppressed": (
        lambda app: rows(app).suppress(MINUTE, name="s"),
        ("step 's': suppress takes until_window_closes(...) or until_time_limit(...)",),
    ),
    "a time limit below 0": (
        lambda app: until_time_limit(-MINUTE),
        ("until_time_limit", "can't be negative"),
    ),
    "final results that go on early": (
        lambda app: until_window_closes(when_full="emit_early"),
        ("only final results go on", "until_time_limit can emit early"),
    ),
    "a full buffer that forgets": (
        lambda app: until_time_limit(5, when_full="drop"),  # type: ignore[arg-type]
        ("when_full='drop' is neither",),
    ),
}
JOINS: Table = {
    "two streams without a time": (
        lambda app: lines(app).join(other(app), first, name="j"),
        ("step 'j': a join of two streams is within a time", "within=timedelta(...)"),
    ),
    "a joiner of one": (
        lambda app: lines(app).join(other(app), lambda v: v, within=MINUTE, name="j"),
        ("step 'j' calls its function with (value, other_value)",),
    ),
    "a joiner without the key that it asked for": (
        lambda app: lines(app).join(other(app), first, within=MINUTE, with_key=True, name="j"),
        ("step 'j' calls its function with (key, value, other_value)",),
    ),
    "a join within less than nothing": (
        lambda app: lines(app).join(other(app), first, within=-MINUTE, name="j"),
        ("step 'j': within can't be negative",),
    ),
    "a join whose window ends before it begins": (
        lambda app: lines(app).join(other(app), first, before=-5, after=1, name="j"),
        ("step 'j': its window ends before it begins: from 5 ms to 1 ms",),
    ),
    "a join with a grace below 0": (
        lambda app: lines(app).join(other(app), first, within=5, grace=-1, name="j"),
        ("step 'j': grace can't be negative",),
    ),
    "a table joined within a time": (
        lambda app: lines(app).join(app.table("t", **TEXT), first, within=5, name="j"),
        ("step 'j' is with a table, and takes no within", "grace, key, this_value, value"),
    ),
    "a global table joined without a key": (
        lambda app: lines(app).join(app.global_table("t", **TEXT), first, name="j"),
        ("step 'j' joins with a global table", "key=lambda key, value: ..."),
    ),
    "a grace where rows have no past": (
        lambda app: lines(app).join(app.table("t", **TEXT), first, grace=5, name="j"),
        ("step 'j' has grace=5", "needs a versioned table", "Store.versioned(name, history=...)"),
    ),
    "an outer join with a table": (
        lambda app: lines(app).outer_join(app.table("t", **TEXT), first, name="j"),
        ("step 'j': the outer join of a stream is with another stream", "Use left_join"),
    ),
    "a join with a topic": (
        lambda app: lines(app).join("other", first, within=5, name="j"),
        ("step 'j' joins a stream with", "'other'"),
    ),
    "a join of streams of two applications": (
        lambda app: lines(app).join(other(App("b")), first, within=5, name="j"),
        ("step 'j' puts streams of two applications together, 'a' and 'b'",),
    ),
    "grace for longer than a table knows": (
        lambda app: lines(app).join(versioned(app), first, grace=6, name="j"),
        ("step 'j' has a grace of 6 ms", "'v' knows for 5 ms", "at least the grace"),
    ),
    "a table looked up by another key": (
        lambda app: lines(app).join(rows(app), first, key=lambda k, v: v, name="j"),
        ("step 'j': key=<function", "is not a serde"),
    ),
    "a global table looked up by the value alone": (
        lambda app: lines(app).join(everywhere(app), first, key=lambda v: v, name="j"),
        ("step 'j' calls its function with (key, value)",),
    ),
    "a global table joined within a time": (
        lambda app: lines(app).join(everywhere(app), first, key=lambda k, v: v, within=5, name="j"),
        ("step 'j' is with a global table, and takes no within",),
    ),
    "a foreign key of all rows": (
        lambda app: rows(app).outer_join(
            rows(app, "more"), first, foreign_key=lambda k, v: v, name="j"
        ),
        ("step 'j': outer_join takes no foreign_key", "Take left_join"),
    ),
    "a foreign key of the value alone": (
        lambda app: rows(app).join(rows(app, "more"), first, foreign_key=lambda v: v, name="j"),
        ("step 'j' calls its function with (key, value)",),
    ),
    "a table joined with a stream": (
        lambda app: rows(app).join(other(app), first, name="j"),
        ("step 'j' joins a table with another one, not with Stream of 'other'",),
    ),
    "tables of two applications joined": (
        lambda app: rows(app).join(rows(App("b")), first, name="j"),
        ("step 'j' puts", "of two applications together, 'a' and 'b'"),
    ),
    "a joiner of one row": (
        lambda app: rows(app).join(rows(app, "more"), lambda v: v, name="j"),
        ("step 'j' calls its function with (value, other_value)",),
    ),
}
COGROUPS: Table = {
    "a cogroup's aggregator without the key": (
        lambda app: grouped(app).cogroup(lambda v, a: a),
        ("calls its function with (key, value, aggregate)",),
    ),
    "a cogroup of a stream": (
        lambda app: together(app).cogroup(other(app), folded),
        ("Stream of 'other'", "group"),
    ),
    "a cogroup's aggregate instead of what makes it": (
        lambda app: together(app).aggregate(0, value=serdes.int64, name="c"),
        ("step 'c' needs a function, got 0", "write it as lambda: ..."),
    ),
    "a cogroup without the serde of its aggregate": (
        lambda app: together(app).aggregate(list, name="c"),
        ("step 'c' needs the serde of its aggregate",),
    ),
}
TABLES: Table = {
    "a table grouped by the value alone": (
        lambda app: rows(app).group_by(lambda value: (value, value), name="by"),
        ("step 'by' calls its function with (key, value)",),
    ),
    "a table's group without a serde": (
        lambda app: rows(app).group_by(lambda k, v: (v, k), name="by").count(name="c"),
        ("needs a key serde",),
    ),
    "a subtractor of one": (
        lambda app: by_value(app).reduce(first, lambda value: value, name="r"),
        ("step 'r' calls its function with (so_far, value)",),
    ),
    "a table's aggregate without a serde": (
        lambda app: by_value(app).aggregate(list, lambda k, v, a: a, lambda k, v, a: a, name="r"),
        ("step 'r' needs the serde of its aggregate",),
    ),
    "a table in a window store": (
        lambda app: app.table(
            "rows", **TEXT, store=Store.window("w", size=1, retention=1), name="rows"
        ),
        ("step 'rows' needs a key-value", "'w' is a window store"),
    ),
    "a topic that is a stream and a global table": (
        lambda app: (lines(app), app.global_table("lines", **TEXT, name="all")),
        ("topic 'lines' is read by two steps, 'read' and 'all'",),
    ),
}
MISTAKES = WINDOWS | JOINS | COGROUPS | TABLES


@pytest.mark.parametrize(("mistake", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_at_build_time_with_the_place_and_the_remedy(
    mistake: Any, parts: tuple[str, ...]
) -> None:
    message = provoke_refusal(mistake)
    for part in parts:
        assert part in message
    assert "\n" not in message
    assert len(message) < 400


ASKED: Table = {
    "count a stream": (
        lambda app: lines(app).count(),
        ("Stream of 'read' has no 'count': first group_by(...) or group_by_key()",),
    ),
    "write a table": (
        lambda app: rows(app).to("out"),
        ("Table of 'rows' has no 'to': first to_stream()",),
    ),
    "count a table": (
        lambda app: rows(app).count(),
        ("first group_by(lambda key, value: (new_key, new_value))",),
    ),
    "suppress a stream": (
        lambda app: lines(app).suppress(until_time_limit(5)),
        ("tables hold updates back",),
    ),
    "filter a group": (
        lambda app: grouped(app).filter(lambda k, v: v),
        ("Grouped of 'read' has no 'filter': do it before grouping",),
    ),
    "stream a windowed group": (lambda app: windowed(app).to_stream(), ("first count()",)),
    "stream a table's group": (lambda app: by_value(app).to_stream(), ("first count()",)),
    "change a global table": (
        lambda app: everywhere(app).map_values(str.upper),
        ("GlobalTable of 'rates' has no 'map_values': every worker has all of it",),
    ),
    "Java's spelling": (
        lambda app: lines(app).mapValues(str.upper),
        ("did you mean map_values?",),
    ),
    "Java's foreach": (lambda app: lines(app).foreach(print), ("did you mean for_each?",)),
    "Quix Streams' apply": (
        lambda app: lines(app).apply(str.upper),
        ("Stream of 'read' has no 'apply': map_values(function)",),
    ),
    "Quix Streams' update": (lambda app: lines(app).update(print), ("peek(",)),
    "Quix Streams' to_topic": (lambda app: lines(app).to_topic("out"), ('to("topic")',)),
    "Quix Streams' window": (
        lambda app: lines(app).tumbling_window(60_000),
        ("group_by_key().windowed_by(windows.tumbling(...))",),
    ),
    "Quix Streams' final": (lambda app: windowed(app).final(), ('count(emit="on_close")',)),
    "Quix Streams' dataframe": (
        lambda app: untyped(app).dataframe("lines"),
        ("App 'a' has no 'dataframe': app.stream(",),
    ),
    "Faust's agent": (
        lambda app: untyped(app).agent("lines"),
        ("App 'a' has no 'agent': app.stream(",),
    ),
    "Faust's Table": (
        lambda app: untyped(app).Table("totals", default=int),
        ("a store:", "store="),
    ),
    "Java's addStateStore": (lambda app: untyped(app).addStateStore(None), ("app.add_store(...)",)),
    "Java's clientInstanceIds": (
        lambda app: untyped(RunningApp.__new__(RunningApp)).clientInstanceIds(1),
        ("RunningApp has no 'clientInstanceIds': librdkafka gives no program the ids", "KIP-714"),
    ),
    "Java's addStreamThread": (
        lambda app: untyped(RunningApp.__new__(RunningApp)).addStreamThread(),
        ("RunningApp has no 'addStreamThread': add_worker_thread()",),
    ),
    "a slip of the pen in App": (
        lambda app: untyped(app).steam("lines"),
        ("did you mean stream?",),
    ),
    "a slip of the pen": (
        lambda app: lines(app).fliter(print),
        ("Stream of 'read' has no 'fliter': did you mean filter?",),
    ),
}


@pytest.mark.parametrize(("mistake", "parts"), ASKED.values(), ids=ASKED)
def test_what_is_asked_of_the_wrong_thing_is_said_with_what_to_write_instead(
    mistake: Any, parts: tuple[str, ...]
) -> None:
    message = provoke_refusal(mistake, AttributeError)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    "mistake",
    [
        lambda stream: stream["amount"],
        lambda stream: stream.__setitem__("amount", 1),
        lambda stream: list(stream),
    ],
    ids=["an index", "an assignment", "an iteration"],
)
def test_a_stream_is_no_data_frame_and_no_iterator(mistake: Any) -> None:
    with pytest.raises(TypeError, match=r"Stream of 'read' is a description.*map_values\("):
        mistake(lines(App("a")))


def test_an_application_can_be_copied() -> None:
    assert copy(App("a")).application_id == "a"


def test_nobody_is_sent_away_from_what_there_is() -> None:
    groups = (Cogrouped, Grouped, GroupedTable, WindowedCogroup, WindowedGroup)
    tests = (TopologyTestDriver, DriverTopic, TopologyBuilder)
    kinds: tuple[type, ...] = (App, RunningApp, GlobalTable, Stream, RowsTable, *groups, *tests)
    assert {kind.__name__ for kind in kinds} == set(ALTERNATIVES)
    for kind in kinds:
        assert [name for name in ALTERNATIVES[kind.__name__] if hasattr(kind, name)] == []
