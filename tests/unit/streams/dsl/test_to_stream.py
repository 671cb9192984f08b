"""Test that a table's updates become a stream, with its keys or with those of a mapper."""

from __future__ import annotations

import pytest

from streams import App, TopologyError, TopologyTestDriver, serdes


def test_a_mapper_gives_the_updates_other_keys_as_select_key_behind_it_does() -> None:
    app = App("a")
    prices = app.table("prices", key=serdes.string, value=serdes.int64)
    prices.to_stream(lambda item, price: price, key=serdes.int64).to("by-price")
    prices.to_stream(name="updates").select_key(lambda item, price: price, key=serdes.int64).to(
        "by-price-too"
    )
    with TopologyTestDriver(app) as driver:
        driver.topic("prices").pipe_many([("pen", 2), ("ink", 30)])
        expected = [(2, 2), (30, 30)]
        assert driver.topic("by-price").read_pairs() == expected
        assert driver.topic("by-price-too").read_pairs() == expected


def test_a_serde_of_keys_without_a_mapper_is_refused() -> None:
    prices = App("a").table("prices", key=serdes.string, value=serdes.int64)
    with pytest.raises(TopologyError, match="and there is no mapper"):
        prices.to_stream(key=serdes.bytes)  # type: ignore[call-overload]
