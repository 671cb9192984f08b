"""Define an application with six kinds of steps that keep state, for `benchmarks.reconcile`.

`orders` and `payments`, both by customer, go through a count, a windowed count, sessions, an
aggregation behind a repartition topic, a table and a join of the two, and each of these writes a
topic. The join's two stores are the only ones that a reconciliation can't compare.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from confluent_kafka import Producer

from streams import App, serdes, windows

Order = dict[str, Any]

ORDERS, PAYMENTS = "orders", "payments"
INPUTS = (ORDERS, PAYMENTS)
OUTPUTS = ("orders-counted", "orders-by-window", "visits", "item-totals", "last-orders", "paid")
TABLES: tuple[str, ...] = ()
UNCHECKED = ("orders-to-pay", "payments-made")
"""The stores of the join, which are not compared: the topic `paid` is."""
CUSTOMERS, ITEMS = 200, 50
STEP_MS = 200
"""The time from one record to the next, by their timestamps."""


def add_amount(item: str, order: Order, total: int) -> int:
    """Add an order's amount to the total of its item."""
    return total + int(order["amount"])


def match_payment(order: Order, payment: Order) -> Order:
    """Return an order with the amount that was paid."""
    return {**order, "paid": payment["amount"]}


app = App("six-stores", commit_interval_ms=500, repartition_purge_interval_ms=86_400_000)
orders = app.stream(ORDERS, key=serdes.string, value=serdes.json)
payments = app.stream(PAYMENTS, key=serdes.string, value=serdes.json)

by_customer = orders.group_by_key()
by_customer.count(store="counts").to_stream().to("orders-counted")
(
    by_customer.windowed_by(windows.tumbling(timedelta(minutes=10), grace=timedelta(days=1)))
    .count(store="windows")
    .to_stream()
    .to("orders-by-window")
)
(
    by_customer.windowed_by(windows.session(timedelta(minutes=1), grace=timedelta(days=1)))
    .count(store="visits")
    .to_stream()
    .to("visits")
)
(
    orders.group_by(lambda _, order: order["item"], key=serdes.string)
    .aggregate(int, add_amount, commutative=True, value=serdes.int64, store="totals")
    .to_stream()
    .to("item-totals")
)
orders.to_table(store="last-orders").to_stream().to("last-orders")
orders.join(
    payments,
    match_payment,
    within=timedelta(seconds=30),
    grace=timedelta(days=1),
    value=serdes.json,
    store=UNCHECKED[0],
    other_store=UNCHECKED[1],
).to("paid")


def feed_records(producer: Producer, records: int, began_ms: int) -> dict[str, int]:
    """Write the inputs, of four records three orders and a payment.

    Returns how many records each input has got.
    """
    counts = dict.fromkeys(INPUTS, 0)
    for number in range(records):
        # A payment is of the customer of the order before it.
        ordered = number - (number % 4 == 3)
        value = {"item": f"item-{ordered % ITEMS}", "amount": 1 + ordered % 9, "number": ordered}
        topic = ORDERS if ordered == number else PAYMENTS
        producer.produce(
            topic,
            json.dumps(value),
            f"customer-{ordered % CUSTOMERS}",
            timestamp=began_ms + number * STEP_MS,
        )
        counts[topic] += 1
        if number % 10_000 == 0:
            producer.poll(0)
    return counts
