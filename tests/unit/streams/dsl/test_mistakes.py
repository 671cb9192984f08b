"""Test that mistakes in an application are refused with a message that says where and what to do.

Each row is one mistake: the code that makes it, and parts of the message.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from streams import App, Processor, Store, serdes
from streams.errors import ConfigError, UserError
from tests.unit.streams.dsl.mistakes import (
    TEXT,
    Mistake,
    Table,
    grouped,
    lines,
    provoke_refusal,
    rows,
)


class Idle(Processor):
    """Does nothing and has no store."""


class Counting(Processor):
    stores = ("counts",)


async def asked(key: Any, value: Any) -> bool:
    return True


def yielding(key: Any, value: Any) -> Iterator[Any]:
    yield value


def unreturned(key: Any, value: Any, aggregate: Any):  # type: ignore[no-untyped-def]
    """Change the aggregate in place, as a user's function does that forgets its `return`."""

    def add(number: Any) -> Any:
        return number

    aggregate.append(add(value))


def unreturned_pair(key: Any, value: Any):  # type: ignore[no-untyped-def]
    """Return nothing where nothing is needed."""


def deleting(value: Any):  # type: ignore[no-untyped-def]
    return None


def refusing(value: Any) -> Any:
    raise ValueError(value)


def doubled(function: Any) -> Any:
    @functools.wraps(function)
    def call(value: Any) -> Any:
        function(value)
        return value * 2

    return call


@doubled
def decorated(value: Any):  # type: ignore[no-untyped-def]
    """Return nothing, and leave that to the decorator."""


class Writer:
    def write(self, value: Any) -> Any:
        with suppress(ValueError):
            return value


def nothing(value: Any) -> None:
    """Return nothing, as a user's function does that forgets its `return`."""


SHARED = Idle()


def raising() -> Idle:
    raise OSError("no route")


def two_steps_of_one_name(app: App) -> None:
    lines(app).peek(print, name="same").filter(lambda k, v: True, name="same")


def store_declared_twice(app: App) -> None:
    grouped(app).count(store="c")
    grouped(app).count(store=Store.in_memory("c"))


def store_that_nobody_uses(app: App) -> None:
    app.add_store(Store.persistent("spare", **TEXT))
    lines(app)


def store_that_nobody_declared(app: App) -> None:
    app.add_store(Store.persistent("count", **TEXT))
    lines(app).process(Counting, name="tally")


def two_streams_of_two_applications(app: App) -> None:
    lines(app).merge(lines(App("b")), name="both")


def table_and_stream_of_a_topic(app: App) -> None:
    app.table("lines", **TEXT, name="rows")
    lines(app).to("out")


def writes_its_changelog(app: App) -> None:
    grouped(app).count(store="c")
    lines(app).to("a-c-changelog", name="write")


def writes_its_repartition_topic(app: App) -> None:
    lines(app).group_by(lambda k, v: v, key=serdes.string).count(store="c")
    lines(app).to("a-c-repartition", name="write")


STEPS: Table = {
    "no steps": (lambda app: None, ("'a' has no steps", "app.stream('a-topic')")),
    "a name twice": (two_steps_of_one_name, ("step 'same' is used twice", "another name")),
    "a name that is none": (
        lambda app: lines(app).peek(print, name="").to("out"),
        ("a step's name=... is ''", "text, and not empty"),
    ),
    "a function's result instead of the function": (
        lambda app: lines(app).filter(print(end=""), name="sieve"),
        ("step 'sieve' needs a function, got None", "write it as lambda key, value: ..."),
    ),
    "no function at all": (
        lambda app: lines(app).map_values("upper", name="shout"),
        ("step 'shout' needs a function, got 'upper'", "lambda value: ..."),
    ),
    "filter by the value alone": (
        lambda app: lines(app).filter(lambda v: v, name="sieve"),
        (
            "step 'sieve' calls its function with (key, value)",
            "<lambda> (test_mistakes.py:",
            "takes (v): did you mean lambda key, value: ...?",
        ),
    ),
    "map by the value alone": (
        lambda app: lines(app).map(str.upper, name="swap"),
        ("step 'swap' calls its function with (key, value)", "upper takes (self, /)"),
    ),
    "map_values with the key": (
        lambda app: lines(app).map_values(lambda k, v: v, name="shout"),
        ("step 'shout' calls its function with (value)", "use process_values, which keeps it"),
    ),
    "peek at nothing": (
        lambda app: lines(app).peek(lambda: None, name="look"),
        ("step 'look' calls its function with (key, value)", "takes ()"),
    ),
    "group by a topic": (
        lambda app: lines(app).group_by("user", name="by-user"),
        ("step 'by-user' needs a function, got 'user'",),
    ),
    "a key chosen by the key alone": (
        lambda app: lines(app).select_key(lambda key: key, name="by"),
        ("step 'by' calls its function with (key, value)", "takes (key)"),
    ),
    "an async function": (
        lambda app: lines(app).filter(asked, name="ask"),
        ("step 'ask': asked (test_mistakes.py:", "is async", "write it with def"),
    ),
    "a generator where one result is wanted": (
        lambda app: lines(app).map(yielding, name="many"),
        ("step 'many': yielding (", "yields", "use flat_map"),
    ),
    "a function that returns nothing": (
        lambda app: lines(app).map_values(nothing, name="shout"),
        ("step 'shout' needs what its function returns", "returns None by its annotation"),
    ),
    "an aggregator without a return": (
        lambda app: grouped(app).aggregate(list, unreturned, value=serdes.json, name="fold"),
        (
            "step 'fold' needs what its function returns",
            "unreturned (test_mistakes.py:",
            "in place",
        ),
    ),
    "a branch by the value alone": (
        lambda app: lines(app).split({"big": lambda v: v}, name="sizes"),
        ("step 'sizes' calls its function with (key, value)",),
    ),
    "a split without branches": (
        lambda app: lines(app).split({}, name="sizes"),
        ("step 'sizes' needs its branches as {name: predicate}",),
    ),
    "a default that is a branch": (
        lambda app: lines(app).split({"big": lambda k, v: v}, default="big", name="sizes"),
        ("step 'sizes': the default 'big' is one of the branches too",),
    ),
    "a merge with a table": (
        lambda app: lines(app).merge(rows(app), name="both"),
        ("step 'both' merges streams", "to_stream()"),
    ),
    "a merge of two applications": (
        two_streams_of_two_applications,
        ("step 'both' puts streams of two applications together, 'a' and 'b'",),
    ),
}
SERDES: Table = {
    "a type for a serde": (
        lambda app: app.stream("lines", key=str, value=serdes.string, name="read"),  # type: ignore[call-overload]
        ("step 'read': key=<class 'str'> is not a serde", "did you mean key=serdes.string?"),
    ),
    "a serde's name": (
        lambda app: lines(app).to("out", value="json", name="write"),
        ("step 'write': value='json' is not a serde",),
    ),
    "a serde's name, where it isn't needed yet": (
        lambda app: lines(app).map_values(len, value="int64", name="size"),
        ("step 'size': value='int64' is not a serde",),
    ),
    "a function for a serde": (
        lambda app: lines(app).group_by(lambda k, v: v, key=lambda k: k, name="by"),
        ("step 'by': key=<function", "select_key or map_values"),
    ),
    "a serde's maker for the serde": (
        lambda app: lines(app).map(lambda k, v: (k, v), value=serdes.windowed, name="swap"),
        ("step 'swap': value=<function windowed", "it makes serdes, so call it"),
    ),
    "a source without a serde": (
        lambda app: app.stream("lines", value=serdes.string, name="read"),  # type: ignore[call-overload]
        ("step 'read' needs a key serde", "pass key=serdes"),
    ),
    "no serde behind a map": (
        lambda app: lines(app).map(lambda k, v: (v, k)).to("out", name="write"),
        ("step 'write' needs a key serde", "map and flat_map keep no serde"),
    ),
    "no serde for a new key": (
        lambda app: lines(app).group_by(lambda k, v: v).count(name="tally"),
        ("step 'tally' needs a key serde", "to group_by"),
    ),
    "no serde for an aggregate": (
        lambda app: grouped(app).aggregate(list, lambda k, v, a: a, name="fold"),
        ("step 'fold' needs the serde of its aggregate: value=serdes.",),
    ),
    "no serde for a repartition": (
        lambda app: lines(app).map(lambda k, v: (v, k)).repartition(name="spread"),
        ("step 'spread' needs a key serde",),
    ),
    "no serde for a processor's store": (
        lambda app: app.add_store(Store.persistent("counts", key=serdes.string)),
        ("store 'counts'", "needs a value serde", "value=serdes."),
    ),
    "a topic read with two serdes": (
        lambda app: (lines(app), app.stream("lines", key=serdes.string, value=serdes.json)),
        ("topic 'lines' is read twice", "with other serdes", "take the stream of the first"),
    ),
}
TOPICS: Table = {
    "no topic's name": (
        lambda app: lines(app).to("out put", name="write"),
        ("step 'write': 'out put' is not a topic's name", "letters, digits"),
    ),
    "no topic": (
        lambda app: app.stream(None, **TEXT, name="read"),  # type: ignore[call-overload]
        ("step 'read': None is not a topic's name",),
    ),
    "an empty list of topics": (lambda app: app.stream([], **TEXT), ("a list of at least one",)),
    "a topic chosen by key and value": (
        lambda app: lines(app).to(lambda key, value: "out", name="write"),
        ("step 'write' calls its function with (record)", "did you mean lambda record: ...?"),
    ),
    "a partitioner without the count": (
        lambda app: lines(app).to("out", partitioner=lambda key, value: 0, name="write"),
        ("step 'write' calls its function with (key, value, partitions)",),
    ),
    "a repartition into none": (
        lambda app: lines(app).repartition(partitions=0, name="spread"),
        ("step 'spread': partitions=0, at least 1 is needed",),
    ),
    "a table and a stream of one topic": (
        table_and_stream_of_a_topic,
        ("topic 'lines' is read by two steps", "'rows-source' and 'read'", "to_stream()"),
    ),
    "a topic copied into itself": (
        lambda app: lines(app).map_values(str.lower).to("lines", name="write"),
        ("step 'write' writes each record of 'lines' back", "without an end", "filter() first"),
    ),
    "a sink into a changelog": (
        writes_its_changelog,
        ("step 'write' writes 'a-c-changelog'", "the changelog of store 'c'"),
    ),
    "a sink into a repartition topic": (
        writes_its_repartition_topic,
        ("step 'write' writes 'a-c-repartition'", "the application's own", "repartition()"),
    ),
    "a repartition named as no topic is": (
        lambda app: lines(app).repartition(name="by user"),
        ("a step's name=... is 'by user'", "letters, digits", "give another one"),
    ),
    "a repartition topic whose name is too long": (
        lambda app: lines(app).repartition(name="r" * 240),
        ("at most 249 characters", "'" + "r" * 240),
    ),
}
STORES: Table = {
    "a store that nobody uses": (
        store_that_nobody_uses,
        ("store 'spare' is used by no step", "a processor's stores"),
    ),
    "a store misspelt": (
        store_that_nobody_declared,
        ("step 'tally' uses the store 'counts'", "did you mean 'count'?", "app.add_store"),
    ),
    "two stores of one name": (
        store_declared_twice,
        ("store 'c' is used twice", "share one Store through app.add_store"),
    ),
    "a store's name that is no topic's": (
        lambda app: grouped(app).count(store="by user"),
        ("store 'by user': its changelog is named after it",),
    ),
    "a changelog's name that is too long": (
        lambda app: grouped(app).count(store="c" * 240),
        ("its changelog would be", "at most 249 characters"),
    ),
    "neither a store nor a name": (
        lambda app: grouped(app).count(store=7, name="tally"),
        ("step 'tally': store=7 is neither a Store nor a name",),
    ),
    "a store of another kind": (
        lambda app: grouped(app).count(store=Store.window("c", size=5, retention=10), name="tally"),
        ("step 'tally' needs a key-value", "and 'c' is a window store"),
    ),
    "retention without windows": (
        lambda app: grouped(app).count(store=Store.persistent("c", retention=timedelta(days=1))),
        ("store 'c'", "no windows that retention= could be about", "use ttl="),
    ),
    "retention shorter than a window": (
        lambda app: Store.window("w", size=10, retention=5),
        ("store 'w': retention (5 ms) is less than size (10 ms)",),
    ),
    "a window of no size": (
        lambda app: Store.window("w", size=0, retention=5),
        ("store 'w': size must be at least 1 ms",),
    ),
    "a duration below 0": (
        lambda app: Store.persistent("s", ttl=timedelta(seconds=-1)),
        ("store 's': ttl",),
    ),
    "a duration that is none": (
        lambda app: Store.persistent("s", ttl="1 day"),  # type: ignore[arg-type]
        ("store 's': ttl", "'1 day'"),
    ),
    "options of RocksDB for memory": (
        lambda app: Store.window(
            "w", size=1, retention=1, persistent=False, rocksdb=lambda options: None
        ),
        ("store 'w': rocksdb= is for persistent stores",),
    ),
    "a changelog neither on nor off": (
        lambda app: Store.persistent("s", logged="yes"),  # type: ignore[arg-type]
        ("store 's': logged='yes' is neither True nor False",),
    ),
    "an aggregate instead of what makes it": (
        lambda app: grouped(app).aggregate(0, lambda k, v, a: a, value=serdes.int64, name="sum"),
        ("step 'sum' needs a function, got 0", "write it as lambda: ..."),
    ),
    "an initializer that wants something": (
        lambda app: grouped(app).aggregate(lambda key: 0, max, value=serdes.int64, name="sum"),
        ("step 'sum' calls its function with ()", "takes (key)"),
    ),
    "an aggregator without the key": (
        lambda app: grouped(app).aggregate(
            lambda: 0, lambda v, a: v + a, value=serdes.int64, name="sum"
        ),
        ("step 'sum' calls its function with (key, value, aggregate)", "takes (v, a)"),
    ),
    "a reducer of one": (
        lambda app: grouped(app).reduce(lambda new: new, name="last"),
        ("step 'last' calls its function with (old, new)", "lambda old, new: ..."),
    ),
}
PROCESSORS: Table = {
    "a processor instead of its class": (
        lambda app: lines(app).process(Idle(), name="work"),
        ("step 'work' needs a Processor's class", "each task needs one of its own"),
    ),
    "one processor for all tasks": (
        lambda app: lines(app).process(lambda: SHARED, name="work"),
        ("step 'work'", "returned the same Processor twice"),
    ),
    "a class that is no processor": (
        lambda app: lines(app).process(dict, name="work"),
        ("step 'work' needs a Processor, and <class 'dict'> made {}",),
    ),
    "a processor that can't be made": (
        lambda app: lines(app).process(raising, name="work"),
        ("step 'work' can't make a Processor", "OSError('no route')"),
    ),
    "a store's name for a list of them": (
        lambda app: lines(app).process(Idle, stores="counts", name="work"),
        ("step 'work': stores is a list, as ['counts']",),
    ),
    "a store that is none": (
        lambda app: lines(app).process(Idle, stores=[7], name="work"),
        ("step 'work': 7 is neither a store nor a store's name",),
    ),
    "add_store with a name": (
        lambda app: app.add_store("counts"),  # type: ignore[arg-type]
        ("add_store takes a Store, got 'counts'",),
    ),
}
TABLES: Table = {
    "filter a table by the value alone": (
        lambda app: rows(app).filter(lambda v: v, name="sieve"),
        ("step 'sieve' calls its function with (key, value)",),
    ),
    "map a table's values with the key": (
        lambda app: rows(app).map_values(lambda k, v: v, name="shout"),
        ("step 'shout' calls its function with (value)", "use transform_values, which keeps it"),
    ),
    "a table kept in a window store": (
        lambda app: rows(app).map_values(
            str.upper, store=Store.window("w", size=1, retention=1), name="shout"
        ),
        ("step 'shout' needs a key-value", "'w' is a window store"),
    ),
}
MISTAKES = STEPS | SERDES | TOPICS | STORES | PROCESSORS | TABLES


@pytest.mark.parametrize(("mistake", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_at_build_time_with_the_place_and_the_remedy(
    mistake: Mistake, parts: tuple[str, ...]
) -> None:
    message = provoke_refusal(mistake)
    for part in parts:
        assert part in message
    assert "\n" not in message


def test_there_are_no_two_mistakes_of_one_name() -> None:
    tables = (STEPS, SERDES, TOPICS, STORES, PROCESSORS, TABLES)
    assert len(MISTAKES) == sum(map(len, tables))


@pytest.mark.parametrize(
    "right",
    [
        lambda app: lines(app).filter(max),  # The arguments of `max` are not known.
        lambda app: lines(app).map_values(str.upper),
        lambda app: lines(app).map_values(lambda value, by=2: value * by),
        lambda app: lines(app).peek(print),
        lambda app: lines(app).flat_map(yielding),
        lambda app: lines(app).for_each(lambda *record: None),
        lambda app: grouped(app).aggregate(dict, lambda k, v, a: a, value=serdes.json),
        lambda app: grouped(app).reduce(max),
        lambda app: lines(app).filter(lambda k, v: True).to("lines"),
        lambda app: lines(app).map_values(deleting),
        lambda app: lines(app).map_values(refusing),
        lambda app: lines(app).map_values(decorated),
        lambda app: lines(app).map_values(Writer().write),
        lambda app: lines(app).peek(unreturned_pair),
    ],
)
def test_what_is_right_or_can_not_be_known_to_be_wrong_passes(right: Mistake) -> None:
    app = App("a")
    right(app)
    app.topology()


@pytest.mark.parametrize("name", ["", "word count", "a" * 201])
def test_an_application_whose_topics_could_not_be_named_after_it_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        App(name)
    assert issubclass(ConfigError, UserError)
