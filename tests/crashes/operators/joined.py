"""Define joins of streams and tables, by key and by foreign key, and tables made of tables.

A record of a stream has a number: the left stream has those of remainder 0 and 1 by 3, the right
one those of 1 and 2, a little later, and some of them twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from streams import App, Store, serdes
from streams.processor.transformer import ValueTransformer
from tests.crashes.operators.given import (
    BATCH,
    GRACE_MS,
    JSON,
    SEEN,
    STEP_MS,
    Contents,
    Sent,
    Truth,
    results,
)

LEFT, RIGHT, NAMES, ORDERS, CUSTOMERS, PAYMENTS, REGIONS = TOPICS = (
    "in", "right", "names", "orders", "customers", "payments", "regions",
)  # fmt: skip
PROGRESS = (LEFT, RIGHT, NAMES)
HASHED = (CUSTOMERS,)
STREAM_KEYS = 400
WITHIN_MS = 3_000
"""Further than two streams are apart in time when they are read: a record is joined with None as
soon as that is behind, whatever the grace (KStreamKStreamJoin). A key does not come back in it."""
ORDER_COUNT, CUSTOMER_COUNT = 30, 6


class Doubled(ValueTransformer[str, Any, Any]):
    """Sends an order on with its amount doubled."""

    def transform(self, key: str, value: Any) -> Any:
        return None if value is None else value["amount"] * 2


def pair(one: Any, other: Any) -> list[Any]:
    return [one, other]


def build(application_id: str, source: str, target: str, **settings: Any) -> App:
    app = App(application_id, **settings)
    topic = source.removesuffix(LEFT)
    left, right, names = (app.stream(topic + end, **JSON) for end in PROGRESS)
    for each in (left, right, names):
        results(target, SEEN)(each)
    near: dict[str, Any] = {"within": WITHIN_MS, "grace": GRACE_MS}
    timely: dict[str, Any] = {**near, "emit_interval": 20}
    versioned = names.to_table(store=Store.versioned("names", history=10 * GRACE_MS))
    orders, customers, payments = (
        app.table(topic + end, **JSON, store=end) for end in (ORDERS, CUSTOMERS, PAYMENTS)
    )
    regions = app.global_table(topic + REGIONS, **JSON, store="regions")
    by_customer: Any = {"foreign_key": lambda _, order: order["customer"], "value": serdes.json}
    grouped = orders.group_by(
        lambda _, order: (order["customer"], order["amount"]),
        key=serdes.string,
        value=serdes.json,
    )
    kept: dict[str, Any] = {"value": serdes.json}
    streams = {
        "inner": left.join(right, pair, **near, name="inner"),
        "left": left.left_join(right, pair, **timely, name="left"),
        "outer": left.outer_join(right, pair, **timely, name="outer"),
        "named": left.left_join(versioned, pair, grace=GRACE_MS, name="named"),
        "region": left.left_join(regions, pair, key=lambda key, value: key),
    }
    tables = {
        "paid": orders.join(payments, pair, **kept, store="paid"),
        "left-paid": orders.left_join(payments, pair, **kept),
        "outer-paid": orders.outer_join(payments, pair, **kept),
        "customer": orders.join(customers, pair, **by_customer, name="customer"),
        "left-customer": orders.left_join(
            customers, pair, **by_customer, name="left-customer", store="left-customer"
        ),
        "amounts": grouped.aggregate(
            int,
            lambda _, amount, total: total + amount,
            lambda _, amount, total: total - amount,
            **kept,
            store="amounts",
        ),
        "doubled": orders.transform_values(Doubled, **kept, store="doubled"),
    }
    for operator, stream in streams.items():
        results(target, operator)(stream)
    for operator, table in tables.items():
        # A customer who has no order any more has a total of 0: it is as if there were none.
        results(target, operator)(table.to_stream().map_values(lambda value: value or None))
    return app


def first(begin_ms: int) -> list[Sent]:
    """Return a row of each key; those of regions stay as they are."""
    return [
        Sent(topic, f"key-{n}", f"{topic} {n}", begin_ms)
        for n in range(STREAM_KEYS)
        for topic in (NAMES, REGIONS)
    ]


def batch(begin: int, begin_ms: int) -> list[Sent]:
    """Return some records of each topic.

    Tables get updates and deletions of few keys again and again.
    """
    sent: list[Sent] = []
    for n in range(begin, begin + BATCH):
        key, time_ms = f"key-{n % STREAM_KEYS}", begin_ms + n * STEP_MS
        if n % 3 < 2:
            sent.append(Sent(LEFT, key, n, time_ms))
        if n % 3 > 0:
            later = (3, 7) if n % 5 == 0 else (3,)
            sent += [Sent(RIGHT, key, n * 10 + ms, time_ms + ms) for ms in later]
        if n % 4 == 0:
            sent.append(Sent(NAMES, key, f"name {n}", time_ms))
        order = {"customer": f"c{n // 7 % CUSTOMER_COUNT}", "amount": n}
        order_key = f"o{n * 7 % ORDER_COUNT}"
        sent.append(Sent(ORDERS, order_key, None if n % 11 == 5 else order, time_ms))
        if n % 3 == 0:
            payment = None if n % 9 == 6 else f"paid {n}"
            sent.append(Sent(PAYMENTS, f"o{n * 13 % ORDER_COUNT}", payment, time_ms))
        if n % 5 == 0:
            name = None if n % 15 == 10 else f"customer {n}"
            sent.append(Sent(CUSTOMERS, f"c{n % CUSTOMER_COUNT}", name, time_ms))
            sent.append(Sent(REGIONS, f"other-{n % 20}", None if n % 25 == 5 else n, time_ms))
    return sent


def truth(sent: Sequence[Sent]) -> Truth:
    of: dict[str, list[Sent]] = defaultdict(list)
    for each in sent:
        of[each.topic].append(each)
    return Truth(once={}, last=_tables(of), in_any_order=_streams(of))


def _streams(of: dict[str, list[Sent]]) -> dict[str, dict[str, list[Any]]]:
    pairs, only_left, only_right = [], [], []
    rights: dict[str, list[Sent]] = defaultdict(list)
    met: set[Sent] = set()
    for right in of[RIGHT]:
        rights[right.key].append(right)
    for left in of[LEFT]:
        near = [
            right
            for right in rights[left.key]
            if abs(right.timestamp_ms - left.timestamp_ms) <= WITHIN_MS
        ]
        pairs += [(left.key, [left.value, right.value]) for right in near]
        met.update(near)
        if not near:
            only_left.append((left.key, [left.value, None]))
    only_right = [(r.key, [None, r.value]) for r in of[RIGHT] if r not in met]
    named = [
        (left.key, [left.value, _as_of(of[NAMES], left.key, left.timestamp_ms)])
        for left in of[LEFT]
    ]
    region = {each.key: each.value for each in of[REGIONS]}
    regions = [(left.key, [left.value, region[left.key]]) for left in of[LEFT]]
    return {
        "inner": _sorted(pairs),
        "left": _sorted(pairs + only_left),
        "outer": _sorted(pairs + only_left + only_right),
        "named": _sorted(named),
        "region": _sorted(regions),
    }


def _as_of(names: list[Sent], key: str, time_ms: int) -> Any:
    return [n.value for n in names if n.key == key and n.timestamp_ms <= time_ms][-1]


def _sorted(found: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    by_key: dict[str, list[Any]] = defaultdict(list)
    for key, value in found:
        by_key[key].append(value)
    return {key: sorted(values, key=repr) for key, values in by_key.items()}


def _tables(of: dict[str, list[Sent]]) -> dict[str, Contents]:
    def table(topic: str) -> Contents:
        found = {each.key: each.value for each in of[topic]}
        return {key: value for key, value in found.items() if value is not None}

    orders, customers, payments = table(ORDERS), table(CUSTOMERS), table(PAYMENTS)
    amounts: Contents = {}
    for order in orders.values():
        amounts[order["customer"]] = amounts.get(order["customer"], 0) + order["amount"]

    def by(order: Any) -> Any:
        return customers.get(order["customer"])

    either = orders.keys() | payments.keys()
    return {
        "paid": {k: [v, payments[k]] for k, v in orders.items() if k in payments},
        "left-paid": {k: [v, payments.get(k)] for k, v in orders.items()},
        "outer-paid": {k: [orders.get(k), payments.get(k)] for k in either},
        "customer": {k: [v, by(v)] for k, v in orders.items() if by(v) is not None},
        "left-customer": {k: [v, by(v)] for k, v in orders.items()},
        "amounts": amounts,
        "doubled": {k: 2 * v["amount"] for k, v in orders.items()},
    }
