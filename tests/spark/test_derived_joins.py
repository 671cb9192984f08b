"""Test joins of two streams that Spark computes: what no order can change, and refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples import orders
from state.window_duplicates import DuplicatesWindowStore
from streams import App, serdes, windows
from streams.spark.reconciliation.derivation.plan import COMPUTED, IN_ORDER
from streams.testing import TopologyTestDriver
from tests.spark.ledgers import Ledgers, Row

pytestmark = pytest.mark.sampled(3, by="test")

SEED = 80
TEXT_AND_JSON: dict[str, Any] = {"key": serdes.string, "value": serdes.json}
Piped = tuple[str, str | None, Any, int]


def joining(**window: Any) -> App:
    """Build a join with something before it, beside it and behind it, in its own sub-topology."""
    app = App("joining")
    left = app.stream("left", **TEXT_AND_JSON).filter(lambda _, value: value != 13)
    right = app.stream("right", **TEXT_AND_JSON)
    met = left.join(
        right,
        lambda key, one, other: [key, one, other],
        with_key=True,
        value=serdes.json,
        name="met",
        **window,
    )
    met.to("pairs")
    sums = met.map_values(lambda pair: pair[1] + pair[2]).merge(left, name="both").group_by_key()
    sums.reduce(lambda so_far, new: so_far + new, store="sums", commutative=True)
    met.group_by_key().windowed_by(windows.tumbling(400, grace=2_000)).count(store="met-in-time")
    return app


def inputs(random: Random) -> list[Piped]:
    """Make records of both streams within 500 ms: few keys, no order, some without key or value."""
    return [
        (
            random.choice(("left", "right")),
            random.choice(("a", "b", "c", None)),
            random.choice((*range(30), None)),
            1_000 + random.randrange(500),
        )
        for _ in range(60)
    ]


def one_stream_first(piped: list[Piped], first: str) -> list[Piped]:
    return sorted(piped, key=lambda each: each[0] != first)


def pipe(driver: TopologyTestDriver, piped: Iterable[Piped]) -> None:
    for topic, key, value, at in piped:
        driver.topic(topic).pipe(key, value, at)


@pytest.mark.parametrize(
    "window",
    [{"within": 200, "grace": 300}, {"before": -100, "after": 500, "grace": 100}],
    ids=str,
)
def test_a_join_in_which_nothing_is_forgotten_balances_in_every_order(
    spark: SparkSession, window: dict[str, int]
) -> None:
    app = joining(**window)
    piped = inputs(Random(SEED))
    expected: Counter[Row] = Counter()
    for order in ("as they come", "left", "right"):
        with TopologyTestDriver(app, partitions={"left": 2, "right": 2}) as driver:
            pipe(driver, piped if order == "as they come" else one_stream_first(piped, order))
            ledgers = Ledgers(spark, app, driver)
            if not expected:
                derived = ledgers.derived()
                assert ledgers.balance(derived) == {"pairs", "sums", "met-in-time"}
                assert {each.method for each in derived.accounts} == {COMPUTED}
                stores = {"met-this-join-store", "met-other-join-store"}
                assert {each.name for each in derived.refused} == stores
                [pairs] = [each for each in derived.accounts if each.name == "pairs"]
                expected = Counter(tuple(row) for row in pairs.expected.collect())
            assert Counter(ledgers.actual(pairs)) == expected


def test_the_origin_of_a_pair_is_its_left_record(spark: SparkSession) -> None:
    app = joining(within=100)
    with TopologyTestDriver(app) as driver:
        pipe(driver, [("left", "z", 1, 5), ("right", "a", 2, 20), ("left", "a", 3, 10)])
        ledgers = Ledgers(spark, app, driver)
        pairs = next(each for each in ledgers.derived().accounts if each.name == "pairs")
        assert pairs.origins is not None
        positions = pairs.origins.select("key", "topic", "partition", "offset").collect()
        assert [tuple(row) for row in positions] == [(b"a", "left", 0, 1)]


def test_a_join_that_loses_a_pair_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = joining(within=100, grace=900)
    find_values = DuplicatesWindowStore.find_values

    def without_one(store: Any, key: Any, from_ms: int, to_ms: int) -> Any:
        return [each for each in find_values(store, key, from_ms, to_ms) if each[0] != 20]

    monkeypatch.setattr(DuplicatesWindowStore, "find_values", without_one)
    with TopologyTestDriver(app) as driver:
        pipe(driver, [("left", "a", n, n * 10) for n in range(4)])
        pipe(driver, [("right", "a", 7, 15)])
        ledgers = Ledgers(spark, app, driver)
        pairs = next(each for each in ledgers.derived().accounts if each.name == "pairs")
        missing, beside = ledgers.off(pairs)
        assert missing == Counter({(b"a", None, None, b'["a",2,7]', 20): 1})
        assert beside == Counter()


def test_joins_of_joins_are_computed(spark: SparkSession) -> None:
    app = App("thrice")
    one, two, three = (app.stream(topic, **TEXT_AND_JSON) for topic in ("one", "two", "three"))
    first = one.join(two, lambda a, b: [a, b], within=500, value=serdes.json, name="first")
    first.join(three, lambda a, b: [a, b], within=500, name="second").to("all", value=serdes.json)
    with TopologyTestDriver(app) as driver:
        for number in range(30):
            topic = ("one", "two", "three")[number % 3]
            driver.topic(topic).pipe(f"k{number % 2}", number, number * 15)
        ledgers = Ledgers(spark, app, driver)
        assert ledgers.balance(ledgers.derived()) == {"all"}


def test_two_streams_of_one_topic_are_replayed_in_its_order(spark: SparkSession) -> None:
    app = App("itself")
    stream = app.stream("in", **TEXT_AND_JSON)
    odd = stream.filter(lambda _, value: value % 2)
    stream.join(odd, lambda a, b: [a, b], within=20, value=serdes.json, name="met").to("pairs")
    with TopologyTestDriver(app) as driver:
        for number in range(30):
            driver.topic("in").pipe("k", number, 1_000 + number * 10 - 500 * (number == 20))
        assert driver.late
        ledgers = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        assert ledgers.balance(derived) == {"pairs"}
        assert {each.method for each in derived.accounts} == {IN_ORDER}


@pytest.mark.parametrize(
    ("piped", "doubtful"),
    [
        ([("left", "a", 1, 0), ("right", "a", 2, 50), ("left", "b", 3, 199)], 0),
        ([("left", "a", 1, 0), ("right", "a", 2, 50), ("left", "b", 3, 200)], 1),
        ([("left", "a", 1, 50), ("right", "a", 2, 0), ("right", "b", 3, 200)], 1),
    ],
)
def test_pairs_that_an_order_could_have_lost_are_counted(
    spark: SparkSession, piped: list[Piped], doubtful: int
) -> None:
    app = App("doubtful")
    left, right = app.stream("left", **TEXT_AND_JSON), app.stream("right", **TEXT_AND_JSON)
    met = left.join(right, lambda a, b: [a, b], within=100, value=serdes.json, name="met")
    met.to("pairs")
    results = set()
    for order in ("left", "right"):
        with TopologyTestDriver(app) as driver:
            pipe(driver, one_stream_first(piped, order))
            ledgers = Ledgers(spark, app, driver)
            results.add(tuple(map(str, driver.topic("pairs").read_values())))
    derived = ledgers.derived()
    named = [each.why for each in derived.refused if each.name == "met-this-join"]
    assert [why.split()[0] for why in named] == [str(doubtful)] * bool(doubtful)
    assert (len(results) > 1) == bool(doubtful)


def test_a_pair_that_only_one_side_sees_is_in_doubt(spark: SparkSession) -> None:
    app = joining(before=5_000, after=-1_000)
    piped: list[Piped] = [("left", "a", 1, 500), ("right", "a", 2, 0)]
    with TopologyTestDriver(app) as driver:
        pipe(driver, piped)
        [why] = [
            each.why
            for each in Ledgers(spark, app, driver).derived().refused
            if each.name == "met-this-join"
        ]
        assert why.startswith("1 pairs")


@pytest.mark.parametrize("topics", [("left", "right"), ("left", "left")])
def test_what_is_joined_with_none_is_refused_by_name(
    spark: SparkSession, topics: tuple[str, str]
) -> None:
    app = App("outer")
    streams = {topic: app.stream(topic, **TEXT_AND_JSON) for topic in set(topics)}
    left, right = (streams[topic] for topic in topics)
    odd = left.filter(lambda _, value: value % 2)
    odd.left_join(right, lambda a, b: [a, b], within=1, value=serdes.json, name="met").to("pairs")
    with TopologyTestDriver(app) as driver:
        driver.topic("left").pipe("k", 1, 1)
        derived = Ledgers(spark, app, driver).derived()
        assert derived.accounts == []
        assert "met-this-join" in {each.name for each in derived.refused}
        assert any("joined with None" in each.why for each in derived.refused)


def test_the_example_of_orders_is_refused_by_name_or_balances(spark: SparkSession) -> None:
    with TopologyTestDriver(orders.app) as driver:
        customer = {"name": "Ann", "city": "Basel"}
        driver.topic("customers").pipe("c", customer, 0)
        driver.topic("products").pipe("p", {"name": "lamp", "price": 3}, 1)
        order = {"customer_id": "c", "product_id": "p", "quantity": 2}
        driver.topic("orders").pipe("o", order, 2)
        ledgers = Ledgers(spark, orders.app, driver)
        derived = ledgers.derived()
        tables = {f"KTABLE-SOURCE-{number:010}-STATE-STORE" for number in (1, 3, 5)}
        assert ledgers.balance(derived) == tables
        refused = {each.name.partition("-")[0] for each in derived.refused}
        assert refused == {"customer", "product"}, refused
