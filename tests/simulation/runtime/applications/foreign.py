"""Join orders with their customers by foreign key, inner and left, over two pairs of topics.

The two tables have different numbers of partitions, so that an answer, the row it is for and the
next change of that row come by ways of different length. What must come out is each row of each
join as it is in the end: a row that should have gone is as wrong as one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from streams import App, Store, serdes
from streams.topology.build import Topology
from tests.simulation.runtime.applications.application import Application, Input
from tests.simulation.runtime.topologies import APPLICATION, OUTPUT

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

ORDERS, CUSTOMERS = "orders", "customers"
CUSTOMER_COUNT = 4
CHANGES = 10
"""The number of changes after which new orders and customers begin."""
JOINS = ("inner", "left")

Rows = dict[str, Any]


def pair(order: Any, customer: Any) -> list[Any]:
    return [order, customer]


class Foreign(Application):
    """Runs foreign-key joins of orders with customers, and computes them by a plain loop."""

    topics: ClassVar = {ORDERS: 3, CUSTOMERS: 2, OUTPUT: 2}

    def topology(self, *, caching: bool, persistent: bool) -> Topology:
        app = App(APPLICATION)
        keep = Store.persistent if persistent else Store.in_memory
        kinds: dict[str, Any] = {"key": serdes.string, "value": serdes.json}
        orders, customers = (
            app.table(topic, **kinds, store=keep(topic, caching=caching))
            for topic in (ORDERS, CUSTOMERS)
        )
        by_customer: dict[str, Any] = {
            "foreign_key": lambda _, order: order["customer"],
            "value": serdes.json,
        }
        joined = {
            "inner": orders.join(
                customers,
                pair,
                **by_customer,
                name="inner",
                store=keep("inner-rows", caching=caching),
            ),
            "left": orders.left_join(customers, pair, **by_customer, name="left"),
        }
        for name, table in joined.items():
            table.to_stream().select_key(_named(name), key=serdes.string).to(OUTPUT)
        return app.topology()

    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Change a row of either table: to a new value or two, and maybe delete it at once.

        Each row changes a few times and then never again, so that what is wrong with it stays.
        """
        begun = len(self.inputs)
        customer = f"c{begun // CHANGES + random.randrange(CUSTOMER_COUNT)}"
        is_order = random.random() < 0.6
        topic = ORDERS if is_order else CUSTOMERS
        key = f"o{begun // CHANGES + random.randrange(4)}" if is_order else customer
        refers = customer if random.random() < 0.9 else None
        values, is_gone = random.choice(((1, False), (2, False), (0, True), (1, True)))
        for number in range(begun, begun + values):
            order = {"customer": refers, "number": number}
            new = orjson.dumps(order if is_order else f"customer {number}")
            yield Input(topic, -1, key, new, now_ms)
        if is_gone:
            yield Input(topic, -1, key, None, now_ms)

    def problem(self, world: RuntimeWorld) -> str:
        found = {name: dict[str, Any]() for name in JOINS}
        for records in world.committed(OUTPUT).values():
            for _, key, value in records:
                name, _, row = key.partition(" ")
                found[name][row] = orjson.loads(value) if value else None
        wanted = self._wanted()
        for name, rows in found.items():
            there = {key: row for key, row in rows.items() if row is not None}
            if there != wanted[name]:
                return f"{name}: {_difference(there, wanted[name])}"
        return ""

    def _wanted(self) -> dict[str, Rows]:
        tables: dict[str, Rows] = {ORDERS: {}, CUSTOMERS: {}}
        for each in self.inputs:
            value = None if each.value is None else orjson.loads(each.value)
            tables[each.topic][each.key] = value
        orders = {key: order for key, order in tables[ORDERS].items() if order is not None}
        left = {
            key: [order, tables[CUSTOMERS].get(order["customer"])] for key, order in orders.items()
        }
        inner = {key: row for key, row in left.items() if row[1] is not None}
        return {"inner": inner, "left": left}


def _named(name: str) -> Any:
    return lambda key, _: f"{name} {key}"


def _difference(found: Rows, wanted: Rows) -> str:
    stays = {key: found[key] for key in found.keys() - wanted.keys()}
    missing = {key: wanted[key] for key in wanted.keys() - found.keys()}
    wrong = {
        key: (found[key], wanted[key])
        for key in found.keys() & wanted.keys()
        if found[key] != wanted[key]
    }
    return (
        f"rows that should have gone {stays}, rows that are missing {missing}, "
        f"rows that are other than they should be {wrong}"
    )
