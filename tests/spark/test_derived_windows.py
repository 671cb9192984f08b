"""Test windows that Spark computes: what was late, what has closed, what was suppressed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streams import App, serdes, until_window_closes, windows
from streams.spark.reconciliation.derivation.plan import COMPUTED, IN_ORDER
from streams.testing import TopologyTestDriver
from tests.spark.ledgers import Ledgers

pytestmark = pytest.mark.sampled(2, by="test")

SEED = 8


def readings(driver: TopologyTestDriver, seed: int) -> None:
    """Make readings of a few keys, out of order: some too late for their windows, some for all."""
    print(f"seed {seed}")
    random = Random(seed)
    for number in range(120):
        at = max(number * 100 - random.choice((0, 0, 0, 50, 700, 2_500)), 0)
        key = random.choice(("a", "b", "c", None))
        driver.topic("in").pipe(key, random.randrange(100), at)


def counted_and_summed() -> App:
    app = App("windowed")
    source = app.stream("in", key=serdes.string, value=serdes.int64)
    odd = source.filter(lambda _, value: value % 7).group_by_key()
    odd.windowed_by(windows.tumbling(1_000, grace=300)).count(store="tumbling")
    (
        odd.windowed_by(windows.hopping(1_000, 300, grace=200))
        .reduce(lambda old, new: old + new, commutative=True, store="hopping")
        .map_values(lambda total: {"total": total}, value=serdes.json)
        .to_stream()
        .to("totals")
    )
    (
        odd.windowed_by(windows.tumbling(500, grace=500))
        .aggregate(
            list,
            lambda _, value, seen: sorted([*seen, value]),
            value=serdes.json,
            commutative=True,
            store="closing",
            emit="on_close",
        )
        .to_stream()
        .filter(lambda _, seen: len(seen) > 1)
        .map(lambda window, seen: (window.key, seen), key=serdes.string, value=serdes.json)
        .to("closed")
    )
    (
        odd.windowed_by(windows.tumbling(1_000, grace=0))
        .count(store="held")
        .suppress(until_window_closes())
        .to_stream()
        .to("final")
    )
    odd.windowed_by(windows.unlimited(500)).count(store="unlimited")
    return app


STORES = {"tumbling", "hopping", "closing", "held", "unlimited"}


def test_windows_are_computed_without_what_was_late(spark: SparkSession) -> None:
    app = counted_and_summed()
    with TopologyTestDriver(app, partitions={"in": 2}) as driver:
        readings(driver, SEED)
        assert len(driver.late) > 10
        ledgers = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        assert ledgers.balance(derived) == STORES | {"totals", "closed", "final"}
        assert {each.method for each in derived.accounts} == {COMPUTED}
        [buffer] = derived.refused
        assert "buffer" in buffer.why


def test_sessions_and_sliding_windows_are_replayed(spark: SparkSession) -> None:
    app = App("replayed")
    group = app.stream("in", key=serdes.string, value=serdes.int64).group_by_key()
    group.windowed_by(windows.session(150, grace=100)).count(store="sessions").to_stream().to("s")
    group.windowed_by(windows.sliding(400, grace=500)).reduce(max, store="sliding")
    with TopologyTestDriver(app, partitions={"in": 2}) as driver:
        readings(driver, SEED)
        ledgers = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        assert ledgers.balance(derived) == {"sessions", "s", "sliding"}
        assert {each.method for each in derived.accounts} == {IN_ORDER}


def test_tables_are_joined_in_any_order_of_their_topics(spark: SparkSession) -> None:
    app = App("joined")
    left = app.table("left", key=serdes.string, value=serdes.int64, store="l")
    right = app.table("right", key=serdes.string, value=serdes.int64, store="r")
    joined = left.outer_join(
        right, lambda one, other: [one, other], value=serdes.json, store="both"
    )
    joined.filter(lambda _, pair: None not in pair).to_stream().to("pairs")
    random = Random(SEED)
    with TopologyTestDriver(app) as driver:
        for at in range(80):
            topic = driver.topic(random.choice(("left", "right")))
            topic.pipe(f"k{random.randrange(9)}", random.choice((None, at)), at)
        ledgers = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        assert ledgers.balance(derived) == {"l", "r", "both", "pairs"}
        assert derived.refused == []


def stream_join() -> App:
    app = App("refused")
    left = app.stream("in", key=serdes.string, value=serdes.int64)
    other = app.stream("other", key=serdes.string, value=serdes.int64)
    left.left_join(other, lambda a, b: [a, b], within=100, value=serdes.json, name="met").to(
        "pairs"
    )
    return app


def wall_clock() -> App:
    app = App("idle")
    group = app.stream("in", key=serdes.string, value=serdes.int64).group_by_key()
    window = windows.tumbling(100, idle_close=1_000)
    group.windowed_by(window).count(store="idle", emit="on_close").to_stream().to("pairs")
    return app


def two_topics() -> App:
    app = App("merged")
    both = app.stream(["in", "other"], key=serdes.string, value=serdes.int64)
    both.group_by_key().reduce(lambda old, new: new, store="last").to_stream().to("pairs")
    return app


@pytest.mark.parametrize(
    ("app", "step", "why"),
    [
        (stream_join(), "met-this-join", "joined with None"),
        (wall_clock(), "idle", "wall clock"),
        (two_topics(), "KSTREAM-REDUCE", "commutative=True"),
    ],
)
def test_what_inputs_do_not_determine_is_refused_by_name(
    spark: SparkSession, app: App, step: str, why: str
) -> None:
    with TopologyTestDriver(app) as driver:
        ledgers: Any = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        assert derived.accounts == []
        assert [each for each in derived.refused if each.name.startswith(step) and why in each.why]
