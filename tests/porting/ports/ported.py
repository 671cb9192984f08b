"""Define the applications of `Ported.java` with Millrace, in the same order of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from millrace import App, Processor, Record, Store, Windowed, serdes, until_window_closes, windows

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def kept(name: str) -> Store:
    """Return a store without a cache, as Kafka Streams has it there."""
    return Store.persistent(name, caching=False)


def text(window: Windowed[str]) -> str:
    return f"{window.key}@{window.start_ms}/{window.end_ms}"


def word_count() -> App:
    app = App("word-count")
    (
        app.stream("in", **TEXT)
        .flat_map_values(lambda line: line.lower().split(" "))
        .group_by(lambda key, word: word, key=serdes.string)
        .count(store=kept("counts"))
        .to_stream()
        .map_values(str, value=serdes.string)
        .to("out")
    )
    return app


def page_views() -> App:
    app = App("page-views")
    regions = app.table("regions", **TEXT)
    five_minutes = windows.hopping(
        timedelta(minutes=5), timedelta(minutes=1), grace=timedelta(seconds=10)
    )
    (
        app.stream("in", **TEXT)
        .left_join(regions, lambda page, region: region or "UNKNOWN", value=serdes.string)
        .group_by(lambda user, region: region, key=serdes.string)
        .windowed_by(five_minutes)
        .count(store=kept("views"))
        .to_stream()
        .map(lambda window, count: (text(window), str(count)), **TEXT)
        .to("out")
    )
    return app


def temperature() -> App:
    app = App("temperature")
    (
        app.stream("in", **TEXT)
        .select_key(lambda sensor, celsius: "temp", key=serdes.string)
        .group_by_key()
        .windowed_by(windows.tumbling(timedelta(seconds=5)))
        .reduce(
            lambda one, other: one if int(one) > int(other) else other,
            store=Store.default(caching=False),
        )
        .to_stream()
        .filter(lambda window, celsius: int(celsius) > 20)
        .map(lambda window, celsius: (text(window), celsius), **TEXT)
        .to("out")
    )
    return app


def anomalies() -> App:
    app = App("anomalies")
    (
        app.stream("in", **TEXT)
        .map(lambda ignored, user: (user, user), **TEXT)
        .group_by_key()
        .windowed_by(windows.tumbling(timedelta(minutes=1)))
        .count(store=Store.default(caching=False))
        .filter(lambda window, count: count >= 3)
        .to_stream()
        .filter(lambda window, count: count is not None)
        .map(lambda window, count: (text(window), str(count)), **TEXT)
        .to("out")
    )
    return app


def orders() -> App:
    """Join orders with their customer, who may move; sum what they have ordered by city."""
    app = App("orders")
    customers = app.table("customers", **TEXT, store=kept("customers"))
    rows = app.table("in", **TEXT, store=kept("orders"))
    placed = rows.left_join(
        customers,
        lambda order, city: f"{order}:{city or 'nowhere'}",
        foreign_key=lambda key, order: order.split(":")[0],
        value=serdes.string,
        store=Store.default(caching=False),
    )
    placed.to_stream().to("out")
    (
        placed.group_by(lambda key, order: (order.split(":")[2], order.split(":")[1]), **TEXT)
        .aggregate(
            lambda: "0",
            lambda city, total, so_far: str(int(so_far) + int(total)),
            lambda city, total, so_far: str(int(so_far) - int(total)),
            value=serdes.string,
            store=Store.default(caching=False),
        )
        .to_stream()
        .to("alerts")
    )
    return app


def sensors() -> App:
    """Keep the largest value of each visit of a sensor, until it is over."""
    app = App("sensors")
    (
        app.stream("in", **TEXT)
        .group_by_key()
        .windowed_by(windows.session(timedelta(seconds=30), grace=timedelta(seconds=5)))
        .reduce(
            lambda one, other: one if int(one) >= int(other) else other,
            store=Store.default(caching=False),
        )
        .suppress(until_window_closes())
        .to_stream()
        .map(lambda window, most: (text(window), most), **TEXT)
        .to("out")
    )
    return app


class Rule(Processor[str, str, str, str]):
    """Alerts of a card that has spent more than its limit within a minute."""

    def init(self, context: Any) -> None:
        self.spent = context.store("spent")
        context.schedule(timedelta(minutes=1), self.forget, clock="stream")

    def process(self, payment: Record[str, str]) -> None:
        now = (self.spent.get(payment.key) or 0) + int(payment.value)
        self.spent.put(payment.key, now)
        if now > 100:
            self.context.forward(payment.with_value(f"spent {now}"), to="alerts")
        else:
            self.context.forward(payment, to="out")

    def forget(self, time_ms: int) -> None:
        for key, total in self.spent.all():
            self.context.forward(Record(key, f"forgot {total}", time_ms), to="out")
            self.spent.delete(key)


def fraud() -> App:
    app = App("fraud")
    (
        app.topology_builder()
        .add_source("payments", "in", **TEXT)
        .add_processor("rule", Rule, "payments")
        .add_store(Store.in_memory("spent", key=serdes.string, value=serdes.int64), "rule")
        .add_sink("alerts", "alerts", "rule", **TEXT)
        .add_sink("out", "out", "rule", **TEXT)
    )
    return app


PORTS: Mapping[str, Callable[[], App]] = {
    "word-count": word_count,
    "page-views": page_views,
    "temperature": temperature,
    "anomalies": anomalies,
    "orders": orders,
    "sensors": sensors,
    "fraud": fraud,
}
