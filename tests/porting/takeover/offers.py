"""Join orders with their payments, and with prices as they were, as `Offers.java` does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace import App, Store, serdes

app = App("offers")
TEXT: Any = {"key": serdes.string, "value": serdes.string}


def pair(left: str | None, right: str | None) -> str:
    return f"{left or 'null'}+{right or 'null'}"


orders = app.stream("orders-in", **TEXT)
payments = app.stream("payments-in", **TEXT)
prices = app.table(
    "prices-in", **TEXT, store=Store.versioned("prices", history=timedelta(hours=48))
)
window: Any = {"within": timedelta(minutes=10), "grace": timedelta(hours=2)}
orders.join(payments, pair, **window, name="paid", value=serdes.string).to("paid-out")
orders.outer_join(payments, pair, **window, name="either", value=serdes.string, emit_interval=0).to(
    "either-out"
)
orders.join(prices, pair, name="priced", value=serdes.string).to("priced-out")
