"""Define the application of the suite: orders, priced by two tables, and what each customer owes.

`priced` has each order once, joined behind a repartition topic with the customer's name, a table,
and with the rate of its currency, a global table; `owed` has the sums of each customer in a store.

`python -m streams run tests.versions.application:app` runs it with the settings that the
environment gives.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from streams import App, serdes


class Names(NamedTuple):
    """Names the topics of an application."""

    application: str

    @property
    def orders(self) -> str:
        return f"{self.application}-orders"

    @property
    def customers(self) -> str:
        return f"{self.application}-customers"

    @property
    def rates(self) -> str:
        return f"{self.application}-rates"

    @property
    def priced(self) -> str:
        return f"{self.application}-priced"

    @property
    def owed(self) -> str:
        return f"{self.application}-owed"


def build(application: str, **settings: Any) -> App:
    """Build the application on the topics of its name."""
    names, app = Names(application), App(application, **settings)
    orders = app.stream(names.orders, key=serdes.string, value=serdes.json)
    customers = app.table(names.customers, key=serdes.string, value=serdes.string)
    rates = app.global_table(names.rates, key=serdes.string, value=serdes.int64)
    by_customer = orders.select_key(
        lambda _, order: order["customer"], key=serdes.string, name="by-customer"
    )
    named = by_customer.join(
        customers, lambda order, name: {**order, "name": name}, value=serdes.json
    )
    priced = named.join(
        rates,
        lambda order, rate: {**order, "price": order["amount"] * rate},
        key=lambda _, order: order["currency"],
        value=serdes.json,
    )
    priced.to(names.priced)
    priced.group_by_key().aggregate(
        lambda: 0, lambda _, order, owed: owed + order["price"], value=serdes.int64, store="owed"
    ).to_stream().to(names.owed)
    return app


app = build(os.environ.get("VERSIONS_APPLICATION", "versions"))
