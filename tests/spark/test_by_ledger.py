"""Test what only the ledger's order of records determines, with mistakes planted in the results.

The joiners make the mistakes only in the process of the application: Spark's workers are others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from streams import App, serdes, until_time_limit
from streams.errors import ConfigError
from streams.spark import read_cut, reconcile
from streams.spark.reconciliation.derivation.plan import BY_LEDGER
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, ORDERS, CUSTOMERS, REPS = 2, 400, 7, 3
TEXT_AND_JSON: dict[str, Any] = {"key": serdes.string, "value": serdes.json}
OLD_ROW, CHANGED, LOST, DOUBLED, OLD_PRICE = 371, 372, 373, 374, 375
"""The numbers of the orders with which something goes wrong."""
ROUNDS, ITEMS = 4, 5
"""Orders come in so many rounds, before each of which the items have new prices."""


def build_app(name: str, **settings: Any) -> App:
    """Build joins of orders with customers and with representatives, and what follows from them."""
    the_application = os.getpid()
    first_rows: dict[str, Any] = {}

    def join_customer(order: dict[str, Any], customer: dict[str, Any]) -> dict[str, Any]:
        if os.getpid() == the_application:
            first_row = first_rows.setdefault(customer["name"], customer)
            if order["number"] == OLD_ROW:
                customer = first_row
            if order["number"] == CHANGED:
                return {**order, "city": "nowhere"}
        return {**order, "city": customer["city"]}

    def join_price(order: dict[str, Any], price: int) -> list[int]:
        if os.getpid() == the_application and order["number"] == OLD_PRICE:
            price -= 1
        return [order["number"], price]

    def copy_order(order: dict[str, Any]) -> list[dict[str, Any]]:
        if os.getpid() == the_application:
            return [order] * {LOST: 0, DOUBLED: 2}.get(order["number"], 1)
        return [order]

    app = App(name, commit_interval_ms=100, ledger=True, **settings)
    orders = app.stream(f"{name}-orders", **TEXT_AND_JSON)
    customers = app.table(f"{name}-customers", store="customers", **TEXT_AND_JSON)
    reps = app.table(f"{name}-reps", store="reps", **TEXT_AND_JSON)
    prices = app.global_table(f"{name}-prices", store="prices", **TEXT_AND_JSON)
    joined = orders.join(customers, join_customer).flat_map_values(copy_order)
    joined.to(f"{name}-joined", **TEXT_AND_JSON)
    counts = joined.group_by(lambda _, row: row["city"], **TEXT_AND_JSON).count(store="cities")
    counts.suppress(until_time_limit(timedelta(milliseconds=50))).to_stream().to(f"{name}-calm")
    priced = orders.join(prices, join_price, key=lambda _, order: order["item"])
    priced.to(f"{name}-priced", value=serdes.json)
    (
        priced.group_by(lambda _, row: "all", key=serdes.string, value=serdes.json)
        .aggregate(int, lambda _, row, total: total + row[1], value=serdes.int64, store="revenue")
        .to_stream()
        .to(f"{name}-revenue")
    )
    (
        orders.to_table(store="last")
        .join(
            reps,
            lambda order, rep: [order["number"], rep],
            foreign_key=lambda _, o: o["rep"],
            value=serdes.json,
            store="of-reps",
        )
        .to_stream()
        .to(f"{name}-of-reps")
    )
    return app


def create_topics(servers: str, name: str) -> None:
    outputs = ("joined", "calm", "of-reps", "priced", "revenue")
    with Client(servers) as client:
        for topic in ("orders", "customers", "reps", "prices", *outputs):
            create_topic(client, f"{name}-{topic}", partitions=PARTITIONS)


def feed(servers: str, name: str, numbers: range) -> None:
    """Write orders, and now and then the next city of a customer or name of a representative.

    The prices are new ones, and nobody waits until the application has them.
    """
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})

    def write(topic: str, key: str, value: Any, at_ms: int) -> None:
        producer.produce(f"{name}-{topic}", json.dumps(value), key, timestamp=at_ms)

    for item in range(ITEMS):
        write("prices", f"item-{item}", numbers.start + item, 1)
    for number in numbers:
        customer = f"customer-{number % CUSTOMERS}"
        if number < CUSTOMERS or number % 5 == 0:
            write("customers", customer, {"name": customer, "city": f"city-{number}"}, number + 1)
        if number < REPS or number % 7 == 0:
            write("reps", f"rep-{number % REPS}", f"name-{number}", number + 1)
        order = {
            "number": number,
            "rep": f"rep-{number % REPS}",
            "item": f"item-{number % ITEMS}",
        }
        write("orders", customer, order, number + 1)
    assert producer.flush(HANG_LIMIT_S) == 0


def feed_and_process(app: App, name: str) -> None:
    """Feed the application round by round while it runs, and stop it at the end."""
    servers = app.config.bootstrap_servers

    def is_drained() -> bool:
        try:
            cut = read_cut(app)
        except ConfigError:  # nothing is committed yet
            return False
        ends = cut.ends or {}
        read = sum(at for p, at in cut.offsets.items() if p.topic == f"{name}-orders")
        return read >= fed and all(at >= ends[p] - 1 for p, at in cut.offsets.items() if p in ends)

    with app.start():
        for fed in range(ORDERS // ROUNDS, ORDERS + 1, ORDERS // ROUNDS):
            feed(servers, name, range(fed - ORDERS // ROUNDS, fed))
            wait_until(is_drained, what=f"{fed} orders to be processed")


def test_joins_and_what_follows_from_them_are_checked_and_each_mistake_is_found(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("by-ledger")
    settings = {"repartition_purge_interval_ms": 3_600_000, "state_dir": tmp_path / "state"}
    app = build_app(name, bootstrap_servers=broker.bootstrap_servers, **settings)
    create_topics(broker.bootstrap_servers, name)
    feed_and_process(app, name)
    joined, cities = f"{name}-joined", f"{name}-cities-repartition"
    calm, of_reps = f"{name}-calm", f"{name}-of-reps"
    priced, revenue = f"{name}-priced", f"{name}-revenue-repartition"
    accounts = [joined, cities, "of-reps", of_reps, calm, priced, revenue]
    with reconcile(spark, app, accounts=accounts) as report:
        assert report.is_off
        assert report.accounts.keys() == set(accounts)
        assert {each.account.method for each in report.accounts.values()} == {BY_LEDGER}
        off = {
            (row.account, row.verdict, number_of(row.expected) or number_of(row.found))
            for row in report.some_off(100)
        }
        mistakes = {
            ("missing", OLD_ROW), ("unexpected", OLD_ROW),
            ("missing", CHANGED), ("unexpected", CHANGED),
            ("missing", LOST), ("unexpected", DOUBLED),
        }  # fmt: skip
        wrong_prices = {("missing", OLD_PRICE), ("unexpected", OLD_PRICE)}
        assert off == {
            *((topic, *each) for topic in (joined, cities) for each in mistakes),
            *((topic, *each) for topic in (priced, revenue) for each in wrong_prices),
        }
        prices = {
            json.loads(row.found)[1] // (ORDERS // ROUNDS)
            for row in report.ok.where(f"account = '{priced}'").collect()
        }
        assert len(prices) > 1, "the prices did not change while orders were joined with them"


def number_of(row: str | None) -> int | None:
    if row is None:
        return None
    content = json.loads(row)
    number: int = content[0] if isinstance(content, list) else content["number"]
    return number
