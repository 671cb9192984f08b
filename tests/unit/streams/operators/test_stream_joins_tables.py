"""Test joins of a stream with tables: which row a record meets, and results without a row."""

from __future__ import annotations

from typing import Any, assert_type

import pytest

from state.buffered_change import BufferedChange, RecordOrigin, encode_change
from streams import App, Store, TopologyError, TopologyTestDriver, serdes
from streams.dsl.stream import Stream
from tests.unit.streams.bound import BoundTask
from tests.unit.streams.operators.test_stream_joins import results

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def pair(value: str, row: str | None) -> str:
    return f"{value}+{row}"


def joined(kind: str = "join", *, store: Store | None = None, **how: Any) -> App:
    app = App("a")
    orders, customers = app.stream("orders", **BOTH), app.table("customers", **BOTH, store=store)
    how = {"joiner": pair} | how
    getattr(orders, kind)(customers, **how).to("out", value=serdes.string)
    return app


def versioned() -> Store:
    return Store.versioned("customers", history=1_000)


def test_a_record_meets_the_row_as_it_is_when_it_comes() -> None:
    task = BoundTask(joined())
    task.pipe("k", "early", 5, topic="orders")
    task.pipe("k", "row", 9, topic="customers")
    assert results(task) == []  # a table's update makes no result
    task.pipe("k", "a", 7, topic="orders", headers=[("of", b"the order")])
    assert [headers for *_, headers in task.produced] == [[("of", b"the order")]]
    assert results(task) == [("a+row", 7)]
    task.pipe("k", None, 10, topic="customers")
    task.pipe("k", "b", 11, topic="orders")
    assert results(task) == []
    assert task.dropped_count == 0


def test_a_left_join_joins_what_has_no_row_or_no_key_with_none() -> None:
    task = BoundTask(joined("left_join"))
    task.pipe("k", "a", 5, topic="orders")
    task.pipe(None, "b", 6, topic="orders")
    assert results(task) == [("a+None", 5), ("b+None", 6)]
    task.pipe("k", None, 7, topic="orders")
    assert results(task) == []
    assert task.dropped_count == 1


def test_an_inner_join_drops_records_without_a_key_or_a_value() -> None:
    task = BoundTask(joined())
    task.pipe(None, "b", 6, topic="orders")
    task.pipe("k", None, 7, topic="orders")
    assert results(task) == []
    assert task.dropped_count == 2


def test_a_record_meets_the_row_of_a_versioned_table_as_it_was_at_its_time() -> None:
    task = BoundTask(joined("left_join", store=versioned()))
    task.pipe("k", "old", 10, topic="customers")
    task.pipe("k", "new", 20, topic="customers")
    for timestamp_ms in (9, 10, 19, 20):
        task.pipe("k", "a", timestamp_ms, topic="orders")
    assert results(task) == [("a+None", 9), ("a+old", 10), ("a+old", 19), ("a+new", 20)]


def test_with_a_grace_records_wait_for_rows_that_come_late() -> None:
    task = BoundTask(joined("left_join", store=versioned(), grace=5))
    task.pipe("k", "a", 10, topic="orders", headers=[("of", b"a")])
    task.pipe("k", "row", 9, topic="customers")
    task.pipe("k", "b", 14, topic="orders", headers=[("of", b"b")])
    assert results(task) == []
    task.pipe("k", "c", 15, topic="orders", headers=[("of", b"c")])
    assert [headers for *_, headers in task.produced] == [[("of", b"a")]]
    assert results(task) == [("a+row", 10)]
    task.pipe("k", "d", 100, topic="orders")
    assert results(task) == [("b+row", 14), ("c+row", 15)]


def test_who_reads_the_stream_beside_the_join_sees_the_record_that_came() -> None:
    app = App("a")
    orders, customers = (
        app.stream("orders", **BOTH),
        app.table("customers", store=versioned(), **BOTH),
    )
    orders.left_join(customers, pair, grace=5, value=serdes.string).to("out")
    orders.to("copy")
    task = BoundTask(app)
    task.pipe("k", "a", 10, topic="orders", headers=[("of", b"a")])
    task.pipe("k", "b", 20, topic="orders", headers=[("of", b"b")])
    headers = [(topic, headers) for topic, *_, headers in task.produced]
    assert headers == [
        ("copy", [("of", b"a")]),
        ("out", [("of", b"a")]),
        ("copy", [("of", b"b")]),
    ]


def test_what_waits_goes_by_time_then_by_key_then_as_it_came() -> None:
    task = BoundTask(joined("left_join", store=versioned(), grace=50))
    for key, value, timestamp_ms in (
        ("l", "1", 7), ("k", "2", 7), ("k", "3", 7), ("z", "4", 3)
    ):  # fmt: skip
        task.pipe(key, value, timestamp_ms, topic="orders")
    task.pipe("k", "x", 100, topic="orders")
    assert [value for value, _ in results(task)] == ["4+None", "2+None", "3+None", "1+None"]


def test_what_comes_later_than_the_grace_or_has_no_key_does_not_wait() -> None:
    task = BoundTask(joined("left_join", store=versioned(), grace=5))
    task.pipe("k", "a", 100, topic="orders")
    task.pipe("k", "late", 94, topic="orders")
    task.pipe(None, "keyless", 100, topic="orders")
    assert results(task) == [("late+None", 94), ("keyless+None", 100)]
    task.pipe("k", "in-time", 95, topic="orders")
    assert results(task) == [("in-time+None", 95)]


def test_what_waits_survives_a_restart() -> None:
    app = joined("left_join", store=versioned(), grace=5)
    task = BoundTask(app)
    task.pipe("k", "a", 10, topic="orders")
    task.commit_stores()
    again = BoundTask(app, stores=task.stores)
    again.stream_time_ms = 10
    again.pipe("k", "b", 10, topic="orders")  # A record of the same key and time replaces none.
    again.pipe("k", "c", 20, topic="orders")
    assert results(again) == [("a+None", 10), ("b+None", 10)]


def test_what_waits_lies_in_its_changelog_as_kafka_streams_writes_it() -> None:
    task = BoundTask(joined(store=versioned(), grace=5, name="j"))
    task.pipe("k", "v", 258, topic="orders", headers=[])
    [(key, value, _)] = task.stores["j-Buffer"].drain_writes()
    assert key == b"\0" + b"\0\0\0\0\0\0\1\2" + b"k" + b"\0\0\0\1"
    change = BufferedChange(None, None, b"v", RecordOrigin(258, 7, 0, "orders", ()))
    assert value == encode_change(change) + bytes(8)


def test_records_of_one_time_leave_in_their_order_after_a_restart_too() -> None:
    app = App("a")
    table = app.table(
        "table",
        key=serdes.string,
        value=serdes.string,
        store=Store.versioned("rows", history=1_000),
    )
    joined = app.stream("in", key=serdes.string, value=serdes.string).left_join(
        table, lambda value, row: value, value=serdes.string, grace=10
    )
    joined.to("out")
    with TopologyTestDriver(app) as driver:
        records = driver.topic("in")
        records.pipe("another", "z", timestamp_ms=4)
        for value in "abc":
            records.pipe("k", value, timestamp_ms=5)
        driver.crash()
        driver.restart()
        records.pipe("k", "d", timestamp_ms=5)
        records.pipe("k", "e", timestamp_ms=5)
        records.pipe("k", "last", timestamp_ms=20)
        assert driver.topic("out").read_values() == ["z", "a", "b", "c", "d", "e"]


def test_a_grace_needs_a_versioned_table() -> None:
    with pytest.raises(TopologyError, match=r"step 'j' has grace=5.*needs a versioned table"):
        joined(grace=5, name="j")
    with pytest.raises(TopologyError, match="grace can't be negative: -5 ms"):
        joined(grace=-5, name="j", store=versioned())


def test_a_stream_with_changed_keys_goes_through_a_topic_named_after_the_join() -> None:
    def topics(**how: Any) -> frozenset[str]:
        app = App("a")
        orders = app.stream("orders", **BOTH).select_key(
            lambda key, value: value, key=serdes.string, name="by-customer"
        )
        orders.join(app.table("customers", **BOTH), pair, **how)
        return app.topology().repartition_topics

    assert topics() == {"a-by-customer-repartition"}
    assert topics(name="j") == {"a-j-repartition"}


def test_stream_and_table_are_co_partitioned() -> None:
    with pytest.raises(TopologyError, match="'customers' has 3, 'orders' has 2"):
        joined().topology().derive_partition_counts({"orders": 2, "customers": 3})


def test_a_table_that_was_computed_on_the_way_is_read_at_its_root() -> None:
    app = App("a")
    shouted = app.table("customers", **BOTH).map_values(str.upper).filter(lambda k, v: v != "NO")
    app.stream("orders", **BOTH).left_join(shouted, pair).to("out", value=serdes.string)
    task = BoundTask(app)
    task.pipe("k", "row", 1, topic="customers")
    task.pipe("l", "no", 1, topic="customers")
    task.pipe("k", "a", 2, topic="orders")
    task.pipe("l", "b", 2, topic="orders")
    assert results(task) == [("a+ROW", 2), ("b+None", 2)]


def test_a_joiner_that_fails_may_be_skipped() -> None:
    def fussy(value: str, row: str) -> str:
        if value == "poison":
            raise ValueError("no")
        return pair(value, row)

    task = BoundTask(joined(joiner=fussy), processing="skip")
    task.pipe("k", "row", 1, topic="customers")
    task.pipe("k", "poison", 2, topic="orders")
    task.pipe("k", "a", 2, topic="orders")
    assert results(task) == [("a+row", 2)]


def currency_of(key: str | None, order: str) -> str | None:
    return order.partition(" ")[2] or None


def converted(kind: str, **how: Any) -> TopologyTestDriver:
    app = App("a")
    orders, rates = app.stream("orders", **BOTH), app.global_table("rates", **BOTH)
    how = {"joiner": pair, "key": currency_of} | how
    getattr(orders, kind)(rates, **how).to("out", value=serdes.string)
    driver = TopologyTestDriver(app, partitions={"orders": 2})
    driver.topic("rates").pipe("EUR", "1.1", timestamp_ms=1)
    for number, (key, value) in enumerate(
        [("1", "9 EUR"), (None, "8 EUR"), ("2", "7 XAU"), ("3", "6"), ("4", None)], 10
    ):
        driver.topic("orders").pipe(key, value, timestamp_ms=number)
    return driver


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("join", ["9 EUR+1.1", "8 EUR+1.1"]),
        ("left_join", ["9 EUR+1.1", "8 EUR+1.1", "7 XAU+None", "6+None"]),
    ],
)
def test_a_global_table_is_joined_by_any_key(kind: str, expected: list[str]) -> None:
    found = converted(kind).topic("out").read_all()
    assert sorted(record.value for record in found) == sorted(expected)


def test_a_stream_joined_with_a_global_table_keeps_its_keys_as_they_were() -> None:
    app = App("a")
    rates = app.global_table("rates", **BOTH)
    rekeyed = app.stream("orders", **BOTH).select_key(lambda key, value: value, key=serdes.string)
    counted = rekeyed.join(rates, pair, key=currency_of).group_by_key(value=serdes.string)
    counted.count(store="counts")
    assert app.topology().repartition_topics == {"a-counts-repartition"}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"key": None}, "step 'j' joins with a global table and has no key to look up"),
        ({"within": 5}, "step 'j' is with a global table, and takes no within"),
        ({"key": lambda key: key}, r"step 'j' calls its function with \(key, value\)"),
    ],
)
def test_a_global_table_needs_a_key_and_nothing_else(how: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        converted("join", **how, name="j")


def test_what_does_not_go_with_a_table_is_said() -> None:
    with pytest.raises(TopologyError, match="step 'j' is with a table, and takes no within"):
        joined(within=5, name="j")
    with pytest.raises(TopologyError, match="the outer join of a stream is with another stream"):
        joined("outer_join")
    app = App("a")
    stream: Any = app.stream("orders", **BOTH)
    with pytest.raises(TopologyError, match="a stream, a table or a global table, not with 'c'"):
        stream.join("c", pair)
    with pytest.raises(TopologyError, match="of two applications"):
        stream.join(App("b").table("customers", **BOTH), pair)


def test_the_type_checker_infers_what_a_join_with_a_table_makes() -> None:
    app = App("a")
    texts = app.stream("in", key=serdes.string, value=serdes.string)
    numbers = app.table("numbers", key=serdes.string, value=serdes.int64)
    rates = app.global_table("rates", key=serdes.int64, value=serdes.float64)
    assert_type(texts.join(numbers, lambda text, row: (text, row)), Stream[str, tuple[str, int]])
    left = texts.left_join(numbers, lambda text, row: (text, row))
    assert_type(left, Stream[str, tuple[str, int | None]])
    keyed = texts.join(numbers, lambda key, text, row: (key, text, row), with_key=True)
    assert_type(keyed, Stream[str, tuple[str, str, int]])
    found = texts.join(rates, lambda text, rate: (text, rate), key=lambda key, text: len(text))
    assert_type(found, Stream[str, tuple[str, float]])
