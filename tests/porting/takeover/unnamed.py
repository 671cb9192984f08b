"""Join orders with payments, and items with prices, as `Unnamed.java` does without names.

There the stores and topics of both joins have names that Java has generated: here they are given.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace import App, serdes
from tests.porting.takeover.offers import pair

FOREIGN = "KTABLE-FK-JOIN-SUBSCRIPTION"
JAVA_NAMES = {
    "paid-this-join-store": "KSTREAM-JOINTHIS-0000000004-store",
    "paid-outer-other-join-store": "KSTREAM-OUTEROTHER-0000000005-store",
    "paid-left-shared-join-store": "KSTREAM-OUTERSHARED-0000000004-store",
    "priced-subscription-registration-topic": f"{FOREIGN}-REGISTRATION-0000000014-topic",
    "priced-subscription-response-topic": f"{FOREIGN}-RESPONSE-0000000022-topic",
    "priced-subscription-store": f"{FOREIGN}-STATE-STORE-0000000018",
}
TEXT: Any = {"key": serdes.string, "value": serdes.string}


def build_app(internal_names: dict[str, str]) -> App:
    app = App("unnamed", internal_names=internal_names)
    orders, payments = app.stream("orders-in", **TEXT), app.stream("payments-in", **TEXT)
    window: Any = {"within": timedelta(minutes=10), "grace": timedelta(hours=2)}
    paid = orders.left_join(
        payments, pair, **window, name="paid", value=serdes.string, emit_interval=0
    )
    paid.to("paid-out")
    items = app.table("items-in", **TEXT, store="items-in-STATE-STORE-0000000008")
    prices = app.table("prices-in", **TEXT, store="prices-in-STATE-STORE-0000000011")
    priced = items.left_join(
        prices, pair, foreign_key=lambda key, item: item, name="priced", value=serdes.string
    )
    priced.to_stream().to("priced-out")
    return app


app = build_app(JAVA_NAMES)
without_names = build_app({})
