"""Test that Spark derives from a topology and its inputs what the application holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples import anomalies, dedupe, fraud, page_views, temperature, top_ten, word_count
from streams import App, Store, serdes
from streams.operators.aggregate import aggregate_records
from streams.spark.reconciliation.accounts import AccountKind
from streams.spark.reconciliation.derivation.derive import derive_accounts
from streams.testing import TopologyTestDriver
from tests.spark.ledgers import Ledgers

pytestmark = pytest.mark.sampled(2, by="test")

REPARTITIONED = "word-count-counts-repartition"


def write_lines(driver: TopologyTestDriver) -> None:
    lines = driver.topic("lines")
    for number in range(30):
        lines.pipe(f"k{number % 5}", f"a b{number % 3} a c{number}", number)
    lines.pipe(None, "no key", 50)
    lines.pipe("no words", "", 51)


def test_the_word_count_balances_each_sub_topology_alone(spark: SparkSession) -> None:
    with TopologyTestDriver(word_count.app, partitions={"lines": 2}) as driver:
        write_lines(driver)
        ledgers = Ledgers(spark, word_count.app, driver)
        derived = ledgers.derived()
        assert ledgers.balance(derived) == {"counts", "counts-by-word", REPARTITIONED}
        assert derived.refused == []
        counts = next(each for each in derived.accounts if each.name == "counts")
        assert counts.origins is not None
        origins = {tuple(row) for row in counts.origins.where("key = 'c7'").collect()}
        [at] = [m for m in ledgers.messages(REPARTITIONED) if m.key() == b"c7"]
        assert origins == {(b"c7", REPARTITIONED, at.partition(), at.offset())}


def test_what_was_deleted_of_a_repartition_topic_is_recomputed(spark: SparkSession) -> None:
    with TopologyTestDriver(word_count.app, partitions={"lines": 2}) as driver:
        write_lines(driver)
        ledgers = Ledgers(spark, word_count.app, driver)
        derived = ledgers.derived(recomputed={REPARTITIONED: 2})
        assert ledgers.balance(derived) == {"counts", "counts-by-word"}


def test_an_operator_that_counts_one_key_twice_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def miscount(view: Any) -> Any:
        return aggregate_records(
            view, lambda key, value, so_far: (so_far or 0) + (2 if key == "a" else 1)
        )

    monkeypatch.setattr("streams.dsl.grouped.count_records", miscount)
    app = App("miscounting")
    app.stream("in", key=serdes.string, value=serdes.string).group_by_key().count(store="counts")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("b", "y")])
        ledgers = Ledgers(spark, app, driver)
        [account] = ledgers.derived().accounts
        missing, beside = ledgers.off(account)
        assert missing == Counter({(b"a", None, None, serdes.int64.serialize(1), 0): 1})
        assert beside == Counter({(b"a", None, None, serdes.int64.serialize(2), 0): 1})


MINUTE = 60_000


def heat(driver: TopologyTestDriver) -> None:
    for number in range(40):
        at = number * 7_000 - (15_000 if number % 11 == 10 else 0)
        driver.topic("temperatures").pipe(f"s{number % 3}", 20.0 + number % 13, max(at, 0))


def logins(driver: TopologyTestDriver) -> None:
    for number in range(60):
        account = "a" if number < 24 else f"u{number % 4}"
        login = {"failed": number % 7 != 3, "from": f"10.0.0.{number % 3}"}
        driver.topic("logins").pipe(account, login, number * 5_000)
    driver.topic("logins").pipe("later", {"failed": True, "from": "x"}, 60 * MINUTE)


def events(driver: TopologyTestDriver) -> None:
    for number in range(30):
        driver.topic("events").pipe(f"e{number % 9}", b"x", number * 10 * MINUTE)


def payments(driver: TopologyTestDriver) -> None:
    for number in range(30):
        payment = {"amount": 400 * (number % 5), "country": "CH" if number % 9 else "IT"}
        driver.topic("payments").pipe(f"c{number % 2}", payment, number * 20_000)


def views(driver: TopologyTestDriver) -> None:
    for number in range(3):
        driver.topic("users").pipe(f"u{number}", {"region": f"r{number % 2}"}, 0)
    for number in range(20):
        driver.topic("page-views").pipe(f"u{number % 4}", {"page": "p"}, number * MINUTE)


def plays(driver: TopologyTestDriver) -> None:
    for number in range(4):
        song = {"title": f"t{number}", "genre": f"g{number % 2}"}
        driver.topic("songs").pipe(f"s{number}", song, 0)
    for number in range(20):
        driver.topic("plays").pipe(f"u{number % 3}", {"song": f"s{number % 4}"}, number)


@pytest.mark.parametrize(
    ("app", "fill", "checked", "refused"),
    [
        (temperature.app, heat, {"highest", "heat-alerts"}, {"KTABLE-SUPPRESS"}),
        (anomalies.app, logins, {"failed-logins", "suspicious-logins"}, set()),
        (dedupe.app, events, {"seen", "events-once"}, set()),
        (fraud.app, payments, {"payments-by-card", "suspicious-payments"}, set()),
        (
            page_views.app,
            views,
            {"KTABLE-SOURCE", "views-by-region"},
            {"KSTREAM-LEFTJOIN", "KSTREAM-MAP"},
        ),
        (
            top_ten.app,
            plays,
            {"plays-by-song", "ranked-songs", "top-ten"},
            {"KSTREAM-LEFTJOIN", "KTABLE-SELECT"},
        ),
    ],
    ids=lambda given: given.application_id if isinstance(given, App) else "",
)
def test_each_example_balances_or_is_refused_by_name(
    spark: SparkSession, app: App, fill: Any, checked: set[str], refused: set[str]
) -> None:
    with TopologyTestDriver(app) as driver:
        fill(driver)
        ledgers = Ledgers(spark, app, driver)
        derived = ledgers.derived()
        balanced = {kind(name) for name in ledgers.balance(derived)}
        assert (balanced, {kind(each.name) for each in derived.refused}) == (checked, refused)


def kind(step: str) -> str:
    """Return the kind of a step without the number that it has for lack of a name."""
    words = step.split("-")
    return "-".join(words[:2]) if words[0].startswith("K") else step


def test_of_a_compacted_topic_the_last_values_are_known_and_a_stream_is_refused(
    spark: SparkSession,
) -> None:
    app = App("compacted")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store=Store.persistent("counts", caching=False)).to_stream().to("n")
    stream.filter(lambda key, value: True).to("copied")
    rows = app.table(
        "rows", key=serdes.string, value=serdes.string, store=Store.persistent("r", caching=False)
    )
    rows.to_stream().to("latest")
    with TopologyTestDriver(app) as driver:
        ledgers = Ledgers(spark, app, driver)
        found = derive_accounts(app, ledgers.records, compacted_topics={"in", "rows"})
    kinds = {account.name: account.kind for account in found.accounts}
    assert kinds == {"r": AccountKind.STORE, "latest": AccountKind.UPSERTS}
    assert {(each.name, "is compacted" in each.why) for each in found.refused} == {("in", True)}
