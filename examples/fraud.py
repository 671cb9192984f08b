"""Detect fraud: check each card's payments of the last ten minutes against rules.

    millrace run examples.fraud:app

It reads `payments` (by card) and writes `suspicious-payments`: the payment, and the rules that it
breaks. A card is forgotten ten minutes of event time after its last payment.
"""

from datetime import timedelta
from typing import Any

from millrace import App, Processor, ProcessorContext, Record, Store, serdes

Payment = dict[str, Any]

REMEMBERED_MS = 600_000
PAYMENTS_MAX = 5
AMOUNT_MAX = 5_000


class Rules(Processor[str, Payment, str, Payment]):
    """Forwards the payments that break a rule, together with the rules that they break."""

    stores = [Store.persistent("payments-by-card", key=serdes.string, value=serdes.json)]

    def init(self, context: ProcessorContext[str, Payment]) -> None:
        """Get the store, and schedule the removal of idle cards once a minute of event time."""
        self.recent: Any = context.store("payments-by-card")
        context.schedule(timedelta(minutes=1), self.forget_idle_cards)

    def process(self, record: Record[str, Payment]) -> None:
        """Add a payment to its card's last ten minutes, and forward it if they now break a rule."""
        since_ms = record.timestamp_ms - REMEMBERED_MS
        known = [p for p in self.recent.get(record.key) or [] if p["time_ms"] > since_ms]
        payments = [*known, {**record.value, "time_ms": record.timestamp_ms}]
        self.recent.put(record.key, payments)
        if broken := broken_rules(payments):
            self.context.forward(record.with_value({**record.value, "rules": broken}))

    def forget_idle_cards(self, now_ms: int) -> None:
        """Delete the cards whose last payment is more than ten minutes old."""
        for card, payments in self.recent.all():
            if all(payment["time_ms"] <= now_ms - REMEMBERED_MS for payment in payments):
                self.recent.delete(card)


def broken_rules(payments: list[Payment]) -> list[str]:
    """Return the names of the rules that a card's payments of the last ten minutes break."""
    rules = {
        f"more than {PAYMENTS_MAX} payments": len(payments) > PAYMENTS_MAX,
        f"more than {AMOUNT_MAX} in all": sum(payment["amount"] for payment in payments)
        > AMOUNT_MAX,
        "two countries": len({payment["country"] for payment in payments}) > 1,
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


app = App("fraud-rules")
(
    app.stream("payments", key=serdes.string, value=serdes.json)
    .process_values(Rules)
    .to("suspicious-payments")
)

if __name__ == "__main__":
    app.run()
