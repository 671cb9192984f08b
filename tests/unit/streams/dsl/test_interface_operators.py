"""Test the operators of the public interface in every form in which a user may write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import (
    App,
    LateRecord,
    Processor,
    Record,
    Store,
    TopologyError,
    Windowed,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.dsl.global_table import GlobalTable
from tests.unit.streams.test_interface import JSON, TEXT, driven

MINUTE_MS = 60_000


class Looks(Processor):
    def process(self, record: Record) -> None:
        """Drop the record: forward nothing."""


# Streams


def test_every_operator_of_streams_takes_its_functions_its_serdes_and_a_name() -> None:
    app = App("a")
    lines = app.stream("lines", **TEXT)
    seen: list[tuple[str, Any]] = []
    words = (
        lines.filter(lambda key, line: bool(line), name="not-empty")
        .filter_not(lambda key, line: line == "no", name="not-no")
        .peek(lambda key, line: seen.append((key, line)), name="looked")
        .flat_map_values(str.split, value=serdes.string, name="words")
        .map_values(str.upper, name="upper")
    )
    words.map(lambda key, word: (word, len(word)), key=serdes.string, value=serdes.int64).to("map")
    words.flat_map(
        lambda key, word: [(each, 1) for each in word], key=serdes.string, value=serdes.int64
    ).to("flat-map")
    words.select_key(lambda key, word: word, key=serdes.string, name="by-word").to("select-key")
    words.merge(lines, name="both").repartition(partitions=2, name="spread").to("merged")
    words.for_each(lambda key, word: seen.append((key, word)), name="each")
    words.print("words", to=lambda line: seen.append(("printed", line)))
    words.to_table(store="last").to_stream().to("last-words")
    with driven(app) as driver:
        driver.topic("lines").pipe_many([("k", "ab c"), ("k", "no"), ("k", "")])
        assert driver.topic("map").read_pairs() == [("AB", 2), ("C", 1)]
        assert driver.topic("flat-map").read_pairs() == [("A", 1), ("B", 1), ("C", 1)]
        assert driver.topic("select-key").read_pairs() == [("AB", "AB"), ("C", "C")]
        assert sorted(driver.topic("merged").read_values()) == ["", "AB", "C", "ab c", "no"]
        assert driver.topic("last-words").read_table() == {"k": "C"}
        assert seen == [
            ("k", "ab c"), ("k", "AB"), ("printed", "[words]: k, AB"),
            ("k", "C"), ("printed", "[words]: k, C"),
        ]  # fmt: skip


def test_split_gives_a_stream_for_each_name() -> None:
    app = App("a")
    parts = app.stream("orders", **JSON).split(
        {"big": lambda key, order: order > 9, "small": lambda key, order: order > 0}, default="rest"
    )
    assert list(parts) == ["big", "small", "rest"]
    for name, part in parts.items():
        part.to(name)
    with driven(app) as driver:
        driver.topic("orders").pipe_many([("k", 10), ("k", 1), ("k", -1)])
        assert [driver.topic(name).read_values() for name in parts] == [[10], [1], [-1]]


def test_to_takes_a_topic_or_a_function_of_the_record() -> None:
    app = App("a")
    lines = app.stream("lines", **TEXT)
    lines.to(lambda record: f"of-{record.key}", key=serdes.string, value=serdes.string)
    lines.to("spread", partitioner=lambda key, value, partitions: partitions - 1)
    with driven(app, partitions={"spread": 3}) as driver:
        driver.topic("lines").pipe("k", "v")
        assert driver.topic("of-k", **TEXT).read_values() == ["v"]
        assert driver.topic("spread").read().partition == 2


def test_a_serde_given_to_any_step_takes_the_place_of_the_one_that_flows() -> None:
    app = App("a")
    lines = app.stream("lines", **TEXT)
    data: dict[str, Any] = {"key": serdes.bytes, "value": serdes.bytes}
    made: list[Any] = [
        lines.filter(lambda key, value: True, **data),
        lines.filter_not(lambda key, value: True, **data),
        lines.peek(print, **data),
        lines.map(lambda key, value: (b"", b""), **data),
        lines.flat_map(lambda key, value: [(b"", b"")], **data),
        lines.map_values(str.encode, **data),
        lines.flat_map_values(lambda value: [b""], **data),
        lines.select_key(lambda key, value: b"", **data),
        lines.merge(lines, **data),
        lines.repartition(**data),
        lines.to_table(**data),
        lines.process(Looks, **data),
        lines.process_values(Looks, **data),
        lines.group_by(lambda key, value: b"", **data),
        lines.group_by_key(**data),
    ]
    for each in made:
        assert (each._key, each._value) == (serdes.bytes, serdes.bytes), each


def test_a_serde_that_is_unknown_where_it_is_needed_is_asked_for_by_the_steps_name() -> None:
    app = App("a")
    sources: tuple[Any, ...] = (app.stream, app.table, app.global_table)
    for source in sources:
        with pytest.raises(TopologyError, match=r"step 'read.*' needs a key serde"):
            source("topic", name="read")
    swapped = app.stream("lines", **TEXT).map(lambda key, value: (value, key))
    with pytest.raises(TopologyError, match=r"step 'write' needs a key serde"):
        swapped.to("out", name="write")


def test_a_tables_serdes_may_be_its_stores() -> None:
    app = App("a")
    app.table("rows", store=Store.persistent("rows", **JSON)).to_stream().to("out")
    rates: GlobalTable[str, Any] = app.global_table("rates", store=Store.in_memory("rates", **JSON))
    assert rates.store.name == "rates"
    with driven(app) as driver:
        driver.topic("rows").pipe("k", {"a": 1})
        assert driver.topic("out").read_table() == {"k": {"a": 1}}


def test_streams_are_joined_with_streams_tables_and_global_tables() -> None:
    app = App("a")
    orders = app.stream("orders", **JSON)
    payments = app.stream("payments", **JSON)
    customers = app.table("customers", **TEXT, store="customers")
    rates = app.global_table("rates", **JSON)
    result: dict[str, Any] = {"value": serdes.json}
    near: dict[str, Any] = {"within": timedelta(minutes=5), "grace": timedelta(minutes=1)}
    orders.join(payments, lambda order, payment: [order["n"], payment], **near, **result).to("paid")
    orders.left_join(payments, lambda order, payment: [order["n"], payment], **near, **result).to(
        "left"
    )
    orders.outer_join(payments, lambda order, payment: [order, payment], **near, **result).to(
        "outer"
    )
    orders.join(customers, lambda order, customer: [order["n"], customer], **result).to(
        "with-customer"
    )
    orders.left_join(customers, lambda order, customer: [order["n"], customer], **result).to(
        "with-or-not"
    )
    orders.join(
        rates,
        lambda order, rate: order["n"] * rate,
        key=lambda key, order: order["currency"],
        **result,
    ).to("in-euros")
    orders.left_join(
        rates, lambda order, rate: rate, key=lambda key, order: order["currency"], **result
    ).to("rate-or-none")
    with driven(app) as driver:
        driver.topic("rates").pipe("usd", 2)
        driver.topic("customers").pipe("k", "Ann", 0)
        driver.topic("orders").pipe("k", {"n": 3, "currency": "usd"}, 1)
        driver.topic("payments").pipe("k", "paid", 2)
        for topic, expected in (
            ("paid", [3, "paid"]), ("left", [3, "paid"]),
            ("outer", [{"n": 3, "currency": "usd"}, "paid"]),
            ("with-customer", [3, "Ann"]), ("with-or-not", [3, "Ann"]),
            ("in-euros", 6), ("rate-or-none", 2),
        ):  # fmt: skip
            assert driver.topic(topic).read_values() == [expected]


# Groups, windows and tables


def test_a_groups_name_is_that_of_its_repartition_topic() -> None:
    app = App("a")
    by_word = app.stream("in", **TEXT).group_by(lambda key, word: word, **TEXT, name="by-word")
    by_word.count(store="counts")
    by_word.windowed_by(windows.tumbling(10)).count(store="windowed")
    by_word.cogroup(lambda key, word, total: total + 1).aggregate(int, value=serdes.int64)
    moved = app.stream("in", **TEXT).select_key(lambda key, word: word, key=serdes.string)
    moved.group_by_key(name="moved").count(store="again")
    topics = {"a-by-word-repartition", "a-moved-repartition"}
    assert app.topology().repartition_topics == topics
    with pytest.raises(TopologyError, match=r"a group's name=\.\.\. is 5: it is text"):
        moved.group_by_key(name=5)  # type: ignore[arg-type]
    app.stream("other", **TEXT).group_by(lambda key, word: word, **TEXT, name="moved").count()
    with pytest.raises(TopologyError, match="'moved-repartition-filter' is used twice: give one"):
        app.topology()


def test_groups_are_counted_reduced_aggregated_and_cogrouped() -> None:
    app = App("a")
    clicks = app.stream("clicks", **TEXT).group_by_key(name="clicks")
    views = app.stream("views", **TEXT).group_by(lambda user, page: user, **TEXT)
    clicks.count(store="counted", name="count")
    clicks.reduce(lambda old, new: old + new, store="reduced")
    clicks.aggregate(
        lambda: 0, lambda key, value, total: total + len(value), value=serdes.int64, store="sums"
    )
    both = clicks.cogroup(lambda user, click, total: total + 1)
    both = both.cogroup(views, lambda user, view, total: total + 10)
    both.aggregate(lambda: 0, value=serdes.int64, store="both")
    with driven(app) as driver:
        driver.topic("clicks").pipe_many([("u", "ab"), ("u", "c")])
        driver.topic("views").pipe("u", "page")
        found = {name: driver.store(name).get("u") for name in driver.stores}
        assert found == {"counted": 2, "reduced": "abc", "sums": 3, "both": 12}


@pytest.mark.parametrize(
    "cut",
    [
        windows.tumbling(timedelta(minutes=5), grace=0),
        windows.hopping(timedelta(minutes=5), timedelta(minutes=1)),
        windows.sliding(timedelta(minutes=5)),
        windows.session(timedelta(minutes=5)),
        windows.unlimited(),
    ],
    ids=["tumbling", "hopping", "sliding", "session", "unlimited"],
)
def test_keys_become_windowed(cut: Any) -> None:
    app = App("a")
    app.stream("in", **TEXT).group_by_key().windowed_by(cut).count(
        store="counts", emit="on_update"
    ).to_stream().map_values(str, value=serdes.string).to("out")
    with driven(app) as driver:
        driver.topic("in").pipe("k", "v", 7 * MINUTE_MS)
        key = driver.topic("out").read().key
        assert isinstance(key, Windowed)
        assert str(key) == f"[k@{key.start_ms}/{key.end_ms}]"


def test_a_window_is_emitted_once_when_it_closes_and_what_is_late_is_shown() -> None:
    app, late = App("a"), list[LateRecord[str, str]]()
    app.stream("in", **TEXT).group_by_key().windowed_by(
        windows.tumbling(timedelta(minutes=5), timedelta(seconds=1))
    ).count(
        store=Store.persistent("per-five-minutes", retention=timedelta(hours=1)),
        emit="on_close",
        on_late=late.append,
    ).to_stream().to("out")
    with driven(app) as driver:
        driver.topic("in").pipe_many([("k", "v", 0), ("k", "v", 1), ("k", "v", 6 * MINUTE_MS)])
        (record,) = driver.topic("out").read_all()
        assert (record.key, record.value) == (Windowed("k", 0, 5 * MINUTE_MS), 2)
        assert str(record.key) == "[k@0/300000]"
        driver.topic("in").pipe("k", "too late", 2)
        assert [each.value for each in late] == ["too late"] == [e.value for e in driver.late]


def test_tables_have_their_operators() -> None:
    app = App("a")
    rows = app.table("rows", **JSON, store="rows")
    others = app.table("others", **JSON)
    rows.filter(lambda key, value: value > 1, store="filtered")
    rows.map_values(lambda value: value + 1, store="mapped")
    rows.filter_not(lambda key, value: value > 1).to_stream().to("out")
    grouped = rows.group_by(lambda key, value: ("all", value), **JSON)
    grouped.count(store="count")
    grouped.reduce(lambda so_far, new: so_far + new, lambda so_far, old: so_far - old, store="sum")
    grouped.aggregate(
        lambda: 0,
        lambda key, value, total: total + value,
        lambda key, value, total: total - value,
        value=serdes.json,
        store="total",
    )
    rows.join(others, lambda one, other: [one, other], value=serdes.json, store="joined")
    rows.left_join(others, lambda one, other: [one, other], value=serdes.json, store="left")
    rows.outer_join(others, lambda one, other: [one, other], value=serdes.json, store="outer")
    rows.join(
        others,
        lambda one, other: [one, other],
        foreign_key=lambda key, value: "o",
        value=serdes.json,
        store="foreign",
    )
    rows.suppress(until_time_limit(timedelta(minutes=1))).to_stream().to("calm")
    with driven(app) as driver:
        driver.topic("rows").pipe("r", 1)
        driver.topic("others").pipe("o", 9)
        driver.topic("rows").pipe("r", 2)
        stores = {"filtered": 2, "mapped": 3, "left": [2, None], "outer": [2, None], "joined": None,
                  "foreign": [2, 9]}  # fmt: skip
        assert {name: driver.store(name).get("r") for name in stores} == stores
        sums = {"count": 1, "sum": 2, "total": 2}
        assert {name: driver.store(name).get("all") for name in sums} == sums
        assert driver.topic("calm").is_empty
    windowed = app.stream("more", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    windowed.count().suppress(until_window_closes())
