"""Test that the examples of docs/suppress.md and docs/foreign-key-joins.md do what they say."""

from __future__ import annotations

from typing import Any

from streams import TopologyTestDriver, Windowed
from tests.unit.docs.page_examples import read_blocks, run_examples

MINUTE_MS = 60_000


def test_each_window_of_the_page_has_one_final_result() -> None:
    found: dict[str, Any] = {}
    final, calm = read_blocks("suppress.md")
    exec(final, found)
    with TopologyTestDriver(found["app"]) as driver:
        for value, minute in ((20.0, 1), (25.0, 4), (19.0, 5), (22.0, 2), (18.0, 6)):
            driver.topic("readings").pipe("cellar", value, minute * MINUTE_MS)
        (record,) = driver.topic("highest-by-five-minutes").read_all()
        assert (record.key, record.value) == (Windowed("cellar", 0, 5 * MINUTE_MS), 25.0)
    exec(calm, found)
    with TopologyTestDriver(found["app"]) as driver:
        for at, second in ((1, 1), (2, 6), (3, 12), (4, 30)):
            driver.topic("positions").pipe("bus", {"at": at}, second * 1_000)
        assert driver.topic("positions-calm").read_values() == [{"at": 3}]


def test_orders_of_the_page_know_their_customers_city() -> None:
    app = run_examples("foreign-key-joins.md")["app"]
    with TopologyTestDriver(app, partitions={"orders": 3, "customers": 2}) as driver:
        driver.topic("orders").pipe("1", {"customer": "ann"})
        driver.topic("orders").pipe("2", {"of": "nobody"})
        driver.topic("customers").pipe("ann", {"city": "Ulm"})
        assert driver.topic("enriched-orders").read_pairs() == [
            ("1", {"customer": "ann", "city": "Ulm"})
        ]
        driver.topic("customers").pipe("ann", {"city": "Hof"})
        assert driver.store("enriched").get("1") == {"customer": "ann", "city": "Hof"}
