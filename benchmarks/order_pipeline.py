"""Define a pipeline of orders with joins of all kinds, for `benchmarks.reconcile`.

Orders and payments, both by customer, are counted, joined with the tables of customers, sales
representatives and products, and aggregated; what follows from the joins is aggregated again. It
has the accounts of an application as people write them: most of them depend on the order between
topics, or on the moments of commits.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from confluent_kafka import Producer

from streams import App, serdes, until_time_limit, until_window_closes, windows

Row = dict[str, Any]

ORDERS, PAYMENTS = "orders", "payments"
CUSTOMERS, REPS, PRODUCTS = "customers", "reps", "products"
STREAMS = (ORDERS, PAYMENTS)
TABLES = (CUSTOMERS, REPS, PRODUCTS)
INPUTS = (ORDERS, PAYMENTS, CUSTOMERS, REPS)
"""The inputs whose records tasks read: those of a global table are copied by each worker."""
OUTPUTS = (
    "orders-counted",
    "orders-final",
    "orders-calm",
    "visits",
    "paid",
    "orders-of-customers",
    "regions",
    "priced",
    "revenue",
    "cards",
    "orders-by-rep",
    "rep-totals",
)
UNCHECKED = (
    "orders-to-pay",
    "payments-made",
    "calm-store",
    "final-store",
)
"""The accounts that a reconciliation can't check: stores of joins and suppressions."""
CUSTOMERS_COUNT, ITEMS, REPS_COUNT, REGIONS = 200, 50, 20, 5
STEP_MS = 200
"""The time from one record to the next, by their timestamps."""
CHANGE_EVERY = 20
"""The number of records of which one changes a row of a table."""

_JSON: Any = {"key": serdes.string, "value": serdes.json}


def _amount(row: Row) -> int:
    return int(row["amount"])


app = App(
    "order-pipeline",
    commit_interval_ms=500,
    ledger=True,
    repartition_purge_interval_ms=86_400_000,
)
orders = app.stream(ORDERS, **_JSON)
payments = app.stream(PAYMENTS, **_JSON)
customers = app.table(CUSTOMERS, store="customers", **_JSON)
reps = app.table(REPS, store="reps", **_JSON)
products = app.global_table(PRODUCTS, store="products", **_JSON)

by_customer = orders.group_by_key()
counted = by_customer.count(store="order-counts")
counted.to_stream().to("orders-counted")
counted.suppress(until_time_limit(timedelta(seconds=30)), name="calm").to_stream().to("orders-calm")
(
    by_customer.windowed_by(windows.tumbling(timedelta(minutes=10), grace=timedelta(days=1)))
    .count(store="orders-in-time")
    .suppress(until_window_closes(), name="final")
    .to_stream()
    .to("orders-final")
)
(
    by_customer.windowed_by(windows.session(timedelta(minutes=1), grace=timedelta(days=1)))
    .count(store="visit-counts")
    .to_stream()
    .to("visits")
)
orders.join(
    payments,
    lambda order, payment: {**order, "paid": payment["amount"]},
    within=timedelta(seconds=30),
    grace=timedelta(days=1),
    value=serdes.json,
    store="orders-to-pay",
    other_store="payments-made",
).to("paid")
with_customer = orders.join(customers, lambda order, customer: {**order, **customer})
with_customer.to("orders-of-customers", **_JSON)
(
    with_customer.group_by(lambda _, row: row["region"], **_JSON)
    .aggregate(int, lambda _, row, total: total + _amount(row), value=serdes.int64, store="regions")
    .to_stream()
    .to("regions")
)
priced = orders.join(
    products,
    lambda order, product: {**order, "price": product["price"] * _amount(order)},
    key=lambda _, order: order["item"],
)
priced.to("priced", **_JSON)
(
    priced.group_by_key()
    .aggregate(int, lambda _, row, total: total + row["price"], value=serdes.int64, store="revenue")
    .to_stream()
    .to("revenue")
)
last_orders = orders.to_table(store="last-orders")
last_orders.join(customers, lambda order, customer: {**order, **customer}).to_stream().to(
    "cards", **_JSON
)
by_rep = last_orders.join(
    reps,
    lambda order, rep: {**order, "rep": rep["name"]},
    foreign_key=lambda _, order: order["rep"],
    value=serdes.json,
    store="orders-by-rep",
)
by_rep.to_stream().to("orders-by-rep")
(
    by_rep.group_by(
        lambda _, row: (row["rep"], _amount(row)), key=serdes.string, value=serdes.int64
    )
    .reduce(lambda total, new: total + new, lambda total, old: total - old, store="rep-totals")
    .to_stream()
    .to("rep-totals")
)


def feed_records(producer: Producer, records: int, began_ms: int) -> dict[str, int]:
    """Write `records` records of the inputs, and rows of the tables before them.

    Of four records three are orders and one is a payment; now and then a customer moves to another
    region, or a representative changes the name, or a product its price. Returns how many records
    each input has got.
    """
    counts = dict.fromkeys((*STREAMS, *TABLES), 0)

    def write(topic: str, key: str, value: Row, at_ms: int) -> None:
        producer.produce(topic, json.dumps(value), key, timestamp=at_ms)
        counts[topic] += 1

    for number in range(CUSTOMERS_COUNT):
        write(CUSTOMERS, f"customer-{number}", {"region": f"r{number % REGIONS}"}, began_ms)
    for number in range(REPS_COUNT):
        write(REPS, f"rep-{number}", {"name": f"rep-{number}"}, began_ms)
    for number in range(ITEMS):
        write(PRODUCTS, f"item-{number}", {"price": 1 + number % 7}, began_ms)
    for number in range(records):
        # A payment is of the customer of the order before it.
        ordered = number - (number % 4 == 3)
        at_ms = began_ms + number * STEP_MS
        if number % CHANGE_EVERY == 7:
            moved = number * 7 % CUSTOMERS_COUNT
            write(CUSTOMERS, f"customer-{moved}", {"region": f"r{number % REGIONS}"}, at_ms)
            renamed = number * 3 % REPS_COUNT
            write(REPS, f"rep-{renamed}", {"name": f"rep-{number % 37}"}, at_ms)
            write(PRODUCTS, f"item-{number % ITEMS}", {"price": 1 + number % 7}, at_ms)
        value = {
            "item": f"item-{ordered % ITEMS}",
            "amount": 1 + ordered % 9,
            "number": ordered,
            "rep": f"rep-{ordered * 13 % REPS_COUNT}",
        }
        topic = ORDERS if ordered == number else PAYMENTS
        write(topic, f"customer-{ordered % CUSTOMERS_COUNT}", value, at_ms)
        if number % 10_000 == 0:
            producer.poll(0)
    return counts
