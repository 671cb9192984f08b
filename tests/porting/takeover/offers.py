"""Join orders with their payments, as `Offers.java` does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace import App, serdes

app = App("offers")
TEXT: Any = {"key": serdes.string, "value": serdes.string}


def pair(left: str | None, right: str | None) -> str:
    return f"{left or 'null'}+{right or 'null'}"


orders = app.stream("orders-in", **TEXT)
payments = app.stream("payments-in", **TEXT)
window: Any = {"within": timedelta(minutes=10), "grace": timedelta(hours=2)}
orders.join(payments, pair, **window, name="paid", value=serdes.string).to("paid-out")
orders.outer_join(payments, pair, **window, name="either", value=serdes.string, emit_interval=0).to(
    "either-out"
)
