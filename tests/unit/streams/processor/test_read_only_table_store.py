"""Test that a processor can't write what a restore from the table's own topic would lose."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from streams import (
    App,
    Processor,
    Record,
    Store,
    StreamsError,
    TopologyTestDriver,
    ValueTransformer,
    serdes,
)

TEXT: Any = {"key": serdes.string, "value": serdes.string}
REUSED = "reuse.ktable.source.topics"


def app_with(use: Callable[..., Any], optimization: str, store: Store | str = "rows") -> App:
    """Build an application that forwards what `use(store, key, value)` returns of a table."""

    class User(Processor[str, str, str, str]):
        stores = ("rows",)

        def process(self, record: Record[str, str]) -> None:
            found = use(self.context.store("rows"), record.key, record.value)
            self.context.forward(record.with_value(str(found)))

    app = App("a", topology_optimization=optimization)
    app.table("rows", **TEXT, store=store)
    app.stream("in", **TEXT).process(User, name="correct").to("out", **TEXT)
    return app


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "put": lambda rows, key, value: rows.put(key, value),
    "put_if_absent": lambda rows, key, value: rows.put_if_absent(key, value),
    "delete": lambda rows, key, value: rows.delete(key),
    "get_entry_for_update": lambda rows, key, value: rows.get_entry_for_update(key),
}
READS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "get": lambda rows, key, value: rows.get(key),
    "entry": lambda rows, key, value: rows.entry(key).value,
    "range": lambda rows, key, value: dict(rows.range(key, key))[key],
    "reverse_range": lambda rows, key, value: dict(rows.reverse_range(key, key))[key],
    "prefix_scan": lambda rows, key, value: dict(rows.prefix_scan("k"))[key],
    "all": lambda rows, key, value: dict(rows.all())[key],
    "reverse_all": lambda rows, key, value: dict(rows.reverse_all())[key],
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("optimization", [REUSED, "all"])
def test_a_write_that_no_topic_would_have_is_refused(write: str, optimization: str) -> None:
    with TopologyTestDriver(app_with(WRITES[write], optimization)) as driver:
        driver.topic("rows").pipe("k", "from the topic")
        with pytest.raises(StreamsError, match=rf"'correct' calls {write}\(\) of store 'rows'"):
            driver.topic("in").pipe("k", "corrected")


def test_the_message_names_the_ways_out() -> None:
    with (
        TopologyTestDriver(app_with(WRITES["put"], REUSED)) as driver,
        pytest.raises(StreamsError, match="restored from topic 'rows'") as raised,
    ):
        driver.topic("in").pipe("k", "corrected")
    for way_out in ("app.add_store", "to topic 'rows'", "topology_optimization"):
        assert way_out in str(raised.value)


@pytest.mark.parametrize("read", READS)
def test_reading_goes_on_as_ever(read: str) -> None:
    with TopologyTestDriver(app_with(READS[read], REUSED)) as driver:
        driver.topic("rows").pipe("k", "from the topic")
        driver.topic("in").pipe("k", "?")
        assert driver.topic("out").read_pairs() == [("k", "from the topic")]
        assert "a-rows-changelog" not in driver.topics


def test_with_a_changelog_of_its_own_a_store_is_written_and_restored() -> None:
    with TopologyTestDriver(app_with(WRITES["put"], "none")) as driver:
        driver.topic("rows").pipe("k", "from the topic")
        driver.topic("in").pipe("k", "corrected")
        driver.crash("COMMITTED")
        driver.topic("in").pipe("j", "corrected")
        driver.restart()
        assert dict(driver.store("rows").all()) == {"k": "corrected", "j": "corrected"}


@pytest.mark.parametrize(
    "store",
    [Store.in_memory("rows"), Store.versioned("rows", history=1_000)],
    ids=["in memory", "versioned"],
)
def test_every_kind_of_store_is_refused_alike(store: Store) -> None:
    def read_and_write(rows: Any, key: str, value: str) -> None:
        assert rows.get(key) is not None
        rows.put(key, value, 5)

    with TopologyTestDriver(app_with(read_and_write, REUSED, store)) as driver:
        driver.topic("rows").pipe("k", "from the topic", timestamp_ms=1)
        with pytest.raises(StreamsError, match=r"calls put\(\)"):
            driver.topic("in").pipe("k", "corrected", timestamp_ms=2)


def test_a_transformer_is_refused_alike() -> None:
    class Correct(ValueTransformer[str, str, str]):
        stores = ("rows",)

        def transform(self, key: str, value: str | None) -> str | None:
            self.context.store("rows").put(key, "corrected")
            return value

    app = App("a", topology_optimization=REUSED)
    rows = app.table("rows", **TEXT, store="rows")
    rows.transform_values(Correct, name="correct").to_stream().to("out", **TEXT)
    with (
        TopologyTestDriver(app) as driver,
        pytest.raises(StreamsError, match=r"step 'correct' calls put\(\) of store 'rows'"),
    ):
        driver.topic("rows").pipe("k", "from the topic")


def test_a_table_whose_rows_expire_keeps_its_changelog_and_may_be_written() -> None:
    expiring = Store.persistent("rows", ttl=1_000)
    with TopologyTestDriver(app_with(WRITES["put"], REUSED, expiring)) as driver:
        driver.topic("in").pipe("k", "corrected", timestamp_ms=1)
        assert driver.store("rows").get("k") == "corrected"


def test_a_store_to_read_can_be_copied_and_compared() -> None:
    seen: list[Any] = []
    with TopologyTestDriver(app_with(lambda rows, *_: seen.append(rows), REUSED)) as driver:
        driver.topic("in").pipe("k", "?")
        assert seen == [seen[0]]
        assert not hasattr(seen[0], "__len__")
        assert copy.copy(seen[0]) is not seen[0]
