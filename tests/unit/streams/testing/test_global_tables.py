"""Test that a look-up in a global table sees the records that were piped into its topic before."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, StoreUnavailable, TopologyTestDriver, serdes
from streams.errors import ConfigError
from tests.unit.streams.testing.apps import build_look_up_app

STORES: dict[str, str | Store] = {"disk": "rates", "memory": Store.in_memory("rates")}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_every_task_finds_all_of_it_after_crashes_too(store: str | Store) -> None:
    with TopologyTestDriver(build_look_up_app(store), partitions={"in": 3, "rates": 2}) as driver:
        rates, out = driver.topic("rates"), driver.topic("out")

        def asked(*currencies: str) -> list[str]:
            driver.topic("in").pipe_many([(f"k{n}", each) for n, each in enumerate(currencies)])
            found: list[str] = out.read_values()
            return found

        assert asked("eur") == ["none"]
        rates.pipe_many([("eur", "1.1"), ("gbp", "1.3"), ("sek", "0.1")])
        assert asked("eur", "gbp", "sek", "dkk") == ["1.1", "1.3", "0.1", "none"]
        driver.crash()
        rates.pipe_many([("eur", "1.2"), ("gbp", None)])
        with pytest.raises(StoreUnavailable, match="has crashed"):
            driver.store("rates")
        driver.restart()
        assert asked("eur", "gbp", "sek") == ["1.2", "none", "0.1"]
        assert dict(driver.store("rates").all()) == {"eur": "1.2", "sek": "0.1"}
        driver.restart()
        assert asked("eur") == ["1.2"]


def test_what_the_application_writes_into_its_topic_is_in_it_too() -> None:
    app = build_look_up_app()
    updates = app.stream("updates", key=serdes.string, value=serdes.string)
    updates.map_values(lambda rate: f"{rate}!").to("rates", value=serdes.string)
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("updates").pipe("eur", "1.1")
        assert driver.store("rates").get("eur") == "1.1!"


def test_a_table_without_a_named_store_is_found_by_its_topic_unless_a_store_has_that_name() -> None:
    app = App("named")
    text: Any = {"key": serdes.string, "value": serdes.string}
    app.global_table("rates", **text)
    app.table("rows", **text, store="other")
    app.global_table("other", **text)
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("rates").pipe("eur", "1.1")
        driver.topic("other").pipe("global", "no")
        driver.topic("rows").pipe("row", "yes")
        assert driver.store("rates").get("eur") == "1.1"
        assert list(driver.store("other").all()) == [("row", "yes")]
        with pytest.raises(ConfigError, match="there is no store 'missing'"):
            driver.store("missing")


def test_with_a_seed_it_has_all_that_was_piped() -> None:
    with TopologyTestDriver(build_look_up_app(), seed=1, stores="memory") as driver:
        driver.topic("rates").pipe_many([("eur", "1.1")])
        driver.topic("in").pipe_many([("k", "eur")])
        assert driver.topic("out").read_values() == ["1.1"]
