"""Test tables whose topics have keys in other bytes than the tables' serdes write.

JSON of another writer has spaces; Avro has another id of the schema.
"""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes

KEY: Any = serdes.json()
SPACED, WIDE, TIGHT = b'{"id": 1}', b'{ "id" : 1 }', b'{"id":1}'
STORES = {
    "key-value": Store.in_memory("rows"),
    "versioned": Store.versioned("rows", history=1_000, persistent=False),
}


def joined(value: str, row: str | None) -> str:
    return f"{value}+{row}"


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("optimization", ["none", "reuse.ktable.source.topics"])
def test_a_restored_row_is_found_and_deleted_by_the_bytes_of_its_serde(
    kind: str, optimization: str
) -> None:
    app = App("app", topology_optimization=optimization)
    rows = app.table("rows", key=KEY, value=serdes.string, store=STORES[kind])
    stream = app.stream("in", key=KEY, value=serdes.string)
    stream.left_join(rows, joined, value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        topic = driver.topic("rows", key=serdes.bytes, value=serdes.string)
        topic.pipe(SPACED, "one", timestamp_ms=1)
        topic.pipe(WIDE, "two", timestamp_ms=2)
        driver.crash()
        driver.restart()
        driver.topic("in").pipe({"id": 1}, "a", timestamp_ms=3)
        topic.pipe(TIGHT, None, timestamp_ms=4)
        driver.topic("in").pipe({"id": 1}, "b", timestamp_ms=5)
        assert driver.topic("out").read_values() == ["a+two", "b+None"]


@pytest.mark.parametrize("store", ["rows", Store.in_memory("rows")], ids=["disk", "memory"])
def test_a_row_of_a_global_table_is_found_and_deleted_by_the_bytes_of_its_serde(
    store: str | Store,
) -> None:
    app = App("app")
    rows = app.global_table("rows", key=KEY, value=serdes.string, store=store)
    stream = app.stream("in", key=KEY, value=serdes.string)
    stream.left_join(rows, joined, key=lambda key, value: key, value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        topic = driver.topic("rows", key=serdes.bytes, value=serdes.string)
        topic.pipe(SPACED, "one", timestamp_ms=1)
        driver.topic("in").pipe({"id": 1}, "a", timestamp_ms=1)
        topic.pipe(WIDE, "two", timestamp_ms=2)
        driver.crash()
        driver.restart()
        driver.topic("in").pipe({"id": 1}, "b", timestamp_ms=3)
        assert list(driver.store("rows").all()) == [({"id": 1}, "two")]
        topic.pipe(TIGHT, None, timestamp_ms=4)
        driver.topic("in").pipe({"id": 1}, "c", timestamp_ms=5)
        assert driver.topic("out").read_values() == ["a+one", "b+two", "c+None"]


def test_a_key_that_its_serde_reads_and_does_not_write_goes_to_the_handler() -> None:
    def refuse(key: object) -> bytes:
        raise ValueError("only read")

    app = App("app", deserialization_handler="skip")
    key = serdes.of(refuse, bytes.decode)
    rows = app.global_table("rows", key=key, value=serdes.string, store="rows")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.left_join(rows, joined, key=lambda key, value: None, value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("rows", key=serdes.string, value=serdes.string).pipe("a", "b")
        driver.topic("in").pipe("k", "v")
        assert driver.topic("out").read_values() == ["v+None"]
        assert driver.dropped == 1


@pytest.mark.parametrize("optimization", ["none", "reuse.ktable.source.topics"])
def test_what_a_serde_reads_as_none_is_no_key_or_a_deletion_after_a_restore_too(
    optimization: str,
) -> None:
    app = App("app", topology_optimization=optimization)
    app.table("rows", key=KEY, value=KEY, store=Store.in_memory("rows"))
    app.global_table("all", key=KEY, value=KEY, store=Store.in_memory("all"))
    with TopologyTestDriver(app) as driver:
        for name in ("rows", "all"):
            topic = driver.topic(name, key=serdes.bytes, value=serdes.bytes)
            topic.pipe_many([(b'"a"', b"1"), (b'"a"', b"null"), (b'"b"', b"null"), (b"null", b"2")])
            topic.pipe(b'"c"', b" 3 ")
        for _ in range(2):
            assert dict(driver.store("rows").all()) == {"c": 3}
            assert dict(driver.store("all").all()) == {"c": 3}
            driver.crash()
            driver.restart()
