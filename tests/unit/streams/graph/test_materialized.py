"""Test declarations of stores: their settings, and which are refused when the topology is built."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streams import App, Processor, Store, TopologyError, serdes
from streams.graph.nodes import StoreKind, StoreSpec

BOTH: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


STORE: Any = Store
"""Untyped, to pass arguments that the type checker would refuse."""


def spec(store: Store) -> StoreSpec:
    return store.create_spec(serdes.string, serdes.int64, step="s")


def test_a_store_takes_the_serdes_of_the_step_unless_it_has_its_own() -> None:
    assert spec(Store.persistent("c")) == StoreSpec(name="c", key=serdes.string, value=serdes.int64)
    assert spec(Store.persistent("c", key=serdes.bytes)).key is serdes.bytes


def test_durations_are_milliseconds_or_timedeltas() -> None:
    for retention in (60_000, timedelta(minutes=1)):
        kept = spec(Store.window("w", size=timedelta(seconds=1), retention=retention))
        assert (kept.kind, kept.window_size_ms, kept.retention_ms) == (
            StoreKind.WINDOW,
            1_000,
            60_000,
        )
    assert spec(Store.versioned("v", history=timedelta(hours=1))).history_ms == 3_600_000
    assert spec(Store.session("s", retention=5)).retention_ms == 5
    assert spec(Store.in_memory("t", ttl=7)).ttl_ms == 7


def test_logged_is_a_yes_a_no_or_settings_of_the_changelog_topic() -> None:
    assert spec(Store.persistent("c")).logged
    assert not spec(Store.persistent("c", logged=False)).logged
    kept = spec(Store.persistent("c", logged={"min.cleanable.dirty.ratio": 0.2, "x": True}))
    assert kept.logged
    assert kept.topic_settings == {"min.cleanable.dirty.ratio": "0.2", "x": "true"}


def test_rocksdb_options_are_left_to_a_function() -> None:
    assert spec(Store.persistent("c", rocksdb=print)).rocksdb is print


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Store.persistent("a/b"), "store 'a/b': its changelog is named after it"),
        (lambda: STORE.persistent(7), "store 7: its changelog is named after it"),
        (lambda: STORE.persistent("c", key="string"), "'c': key='string' is not a serde"),
        (lambda: STORE.persistent("c", ttl="1h"), "'c': ttl='1h' is neither milliseconds"),
        (lambda: STORE.persistent("c", ttl=0), "'c': ttl must be at least 1 ms"),
        (lambda: STORE.persistent("c", logged="no"), "'c': logged='no' is neither"),
        (lambda: STORE.persistent("c", rocksdb={}), "'c': rocksdb={} is not a function"),
        (
            lambda: Store.versioned("v", history=1, persistent=False, rocksdb=print),
            "'v': rocksdb= is for persistent stores",
        ),
        (lambda: Store.versioned("v", history=-1), "'v': history can't be negative: -1 ms"),
        (lambda: Store.window("w", size=0, retention=1), "'w': size must be at least 1 ms"),
        (
            lambda: Store.window("w", size=10, retention=9),
            r"'w': retention \(9 ms\) is less than size \(10 ms\)",
        ),
    ],
)
def test_a_store_that_cannot_be(make: Callable[[], Store], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()


class Named(Processor):
    stores = ("seen",)


class NamedBadly(Processor):
    stores = "seen"


class Numbered(Processor):
    stores = (7,)  # type: ignore[assignment]


class Bare(Processor):
    stores = (Store.persistent("seen"),)


class Demanding(Processor):
    def __init__(self, what: str) -> None:
        self.what = what


SEEN = Store.in_memory("seen", **BOTH)
ONE = Bare()


def with_processor(factory: Any, *more: Store) -> Callable[[App], Any]:
    def make(app: App) -> Any:
        for store in more:
            app.add_store(store)
        app.stream("t", **BOTH).process(factory, name="ask")
        return app.topology()

    return make


def in_another_kind(app: App) -> Any:
    store = Store.window("w", size=1, retention=1)
    return app.stream("t", **BOTH).group_by_key().count(store=store, name="tally")


def retention_without_windows(app: App) -> Any:
    store = Store.persistent("c", retention=1)
    return app.stream("t", **BOTH).group_by_key().count(store=store, name="tally")


def grouped(app: App, change: Any = None, **more: Any) -> Any:
    stream: Any = app.stream("t", **BOTH)
    return (stream if change is None else stream.map(change, **more)).group_by_key()


def name_too_long(app: App) -> Any:
    app.stream("t", **BOTH).group_by_key().count(store="s" * 240)
    return app.topology()


def one_store_for_two_counts(app: App) -> Any:
    store = Store.persistent("c")
    stream = app.stream("t", **BOTH)
    stream.group_by_key().count(store=store)
    return stream.group_by_key().count(store=store)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (with_processor(Named), "step 'ask' uses the store 'seen', which nobody has declared"),
        (with_processor(Named, Store.in_memory("sean", **BOTH)), "did you mean 'sean'"),
        (with_processor(Processor, SEEN), "store 'seen' is used by no step"),
        (with_processor(Named, SEEN, Store.in_memory("seen", **BOTH)), "'seen' is used twice"),
        (with_processor(Bare), "store 'seen' of step 'ask' needs a key serde"),
        (with_processor(NamedBadly), r"step 'ask': stores is a list, as \['seen'\]"),
        (with_processor(Numbered), "step 'ask': 7 is neither a store nor a store's name"),
        (with_processor(Demanding), "'ask' can't make a Processor: .*Demanding.* 'what'"),
        (with_processor(lambda: "x"), "'ask' needs a Processor, and .* made 'x'"),
        (with_processor(lambda: ONE), "'ask': .* returned the same Processor twice"),
        (with_processor(ONE), "'ask' needs a Processor's class, .* got .*Bare"),
        (lambda app: app.add_store("seen"), "add_store takes a Store, got 'seen'"),
        (lambda app: app.add_store(Store.persistent("s")), "'s' of step 'add_store' needs a key"),
        (in_another_kind, "step 'tally' needs a key-value.* store, and 'w' is a window store"),
        (retention_without_windows, "store 'c' of step 'tally' has no windows"),
        (name_too_long, "store 'sss.*'a-sss.*at most 249 characters"),
        (lambda app: grouped(app).count(store=7, name="tally"), "'tally': store=7 is neither a"),
        (
            lambda app: grouped(app).aggregate(list, print, name="fold"),
            "step 'fold' needs the serde of its aggregate: value=",
        ),
        (
            lambda app: grouped(app).aggregate(list, print, name="fold", value="json"),
            "store 'fold-STATE-STORE': value='json' is not a serde",
        ),
        (
            lambda app: grouped(app).aggregate([], print, name="fold", value=serdes.json),
            r"step 'fold' needs a function, got \[\]",
        ),
        (lambda app: grouped(app).reduce("+", name="fold"), r"'fold' needs a function, got '\+'"),
        (
            lambda app: grouped(app, lambda k, v: (k, v), key=serdes.string).reduce(max, name="f"),
            "step 'f' needs a value serde",
        ),
        (one_store_for_two_counts, "store 'c' is used twice"),
    ],
)
def test_a_mistake_with_stores_is_refused_and_named(
    mistake: Callable[[App], Any], message: str
) -> None:
    with pytest.raises(TopologyError, match=message):
        mistake(App("a"))
