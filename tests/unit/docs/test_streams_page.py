"""Test that the examples of docs/streams.md do what the page says."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, TopologyTestDriver
from tests.unit.docs.page_examples import read_blocks


def app(number: int) -> App:
    found: dict[str, Any] = {}
    exec(read_blocks("streams.md")[number], found)
    made: App = found["app"]
    return made


def test_branches_of_a_stream_are_independent() -> None:
    with TopologyTestDriver(app(0)) as driver:
        driver.topic("orders").pipe("1", {"total": 5, "city": "Faro"}, timestamp_ms=1)
        driver.topic("orders").pipe("2", {"total": 500, "city": "Faro"}, timestamp_ms=2)
        assert driver.topic("large-totals").read_table() == {"2": 500}
        assert list(driver.topic("large-by-city").read_table()) == ["Faro"]


def test_an_extractor_says_the_time_of_a_record() -> None:
    with TopologyTestDriver(app(1)) as driver:
        driver.topic("readings").pipe("attic", {"measured_ms": 7, "celsius": 1.5}, timestamp_ms=9)
        assert driver.topic("celsius").read().timestamp_ms == 7


def test_a_repartition_topic_appears_where_it_is_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    topology = app(3).topology()
    assert "visits-visits-by-page-repartition" in capsys.readouterr().out
    assert topology.repartition_topics == {"visits-visits-by-page-repartition"}
    assert app(4).topology().derive_partition_counts({"narrow": 2})["spread-wide-repartition"] == 12


def test_a_record_goes_to_its_branch() -> None:
    with TopologyTestDriver(app(5)) as driver:
        for topic, amount, country in (
            ("cards", 5_000, "ES"),
            ("transfers", 10, "ES"),
            ("cards", 1, "PT"),
        ):
            payment = {"amount": amount, "country": country}
            driver.topic(topic).pipe("a", payment, timestamp_ms=1)
        for topic, amount in (
            ("large-payments", 5_000),
            ("foreign-payments", 10),
            ("other-payments", 1),
        ):
            assert [r.value["amount"] for r in driver.topic(topic).read_all()] == [amount]


def test_functions_choose_topic_and_partition() -> None:
    with TopologyTestDriver(app(6), partitions={"by-shop": 3}) as driver:
        driver.topic("events").pipe("e", {"kind": "sale", "shop": 5}, timestamp_ms=1)
        assert not driver.topic("events-sale").is_empty
        (record,) = driver.topic("by-shop").read_all()
        assert record.partition == 2
