"""Test that records go into a topic, and that committed ones come out, each of them once."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Record, SerdeError, Store, TopologyTestDriver, serdes, windows
from streams.errors import ConfigError
from streams.testing import DriverTopic
from tests.unit.streams.testing.apps import (
    build_counting_app,
    build_upper_app,
    build_word_count_app,
)


def values(topic: DriverTopic) -> list[Any]:
    return [record.value for record in topic.read_all()]


def test_what_was_read_is_not_read_again_by_any_handle() -> None:
    with TopologyTestDriver(build_upper_app()) as driver:
        driver.topic("in").pipe_many([("k", "a"), ("k", "b"), ("k", "c")])
        out = driver.topic("out")
        assert out.read().value == "A"
        assert driver.topic("out").read_values() == ["B", "C"]
        assert out.is_empty
        with pytest.raises(LookupError, match="'out' has no record that was not read"):
            out.read()


def test_a_table_is_of_all_records_and_those_without_a_value_remove_their_key() -> None:
    app = App("through")
    app.stream("in", key=serdes.string, value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        topic, out = driver.topic("in"), driver.topic("out")
        topic.pipe_many([("k", "a"), ("l", "b"), ("k", "c")])
        assert out.read_table() == {"k": "c", "l": "b"}
        topic.pipe("l", None)
        assert out.read() == Record("l", None, 1)
        assert out.read_table() == {"k": "c"}
        assert out.is_empty


def test_records_of_several_partitions_are_read_in_the_order_in_which_they_were_written() -> None:
    with TopologyTestDriver(build_upper_app(), partitions={"in": 3, "out": 3}) as driver:
        letters = [chr(ord("a") + n) for n in range(20)]
        driver.topic("in").pipe_many([(letter, letter) for letter in letters])
        read = driver.topic("out").read_all()
        assert [record.value for record in read] == [letter.upper() for letter in letters]
        assert {record.partition for record in read} == {0, 1, 2}


def test_a_key_goes_to_the_partition_that_kafkas_clients_choose() -> None:
    with TopologyTestDriver(build_upper_app(), partitions={"in": 10}) as driver:
        topic = driver.topic("in")
        topic.pipe_many([("21", ""), ("foobar", ""), ("a-little-bit-long-string", "")])
        # murmur2 of these keys: Kafka's own UtilsTest.
        hashes = (-973932308, -790332482, -985981536)
        numbers = [record.partition for record in topic.read_all()]
        assert numbers == [(each & 0x7FFFFFFF) % 10 for each in hashes]


def test_a_partition_may_be_given_and_without_a_key_is_drawn_from_the_seed() -> None:
    def drawn(seed: int) -> list[int]:
        with TopologyTestDriver(build_upper_app(), partitions={"in": 4}, seed=seed) as driver:
            driver.topic("in").pipe("k", "v", partition=3)
            driver.topic("in").pipe_many([(None, "v")] * 8)
            return [record.partition for record in driver.topic("in").read_all()]

    assert drawn(1) == drawn(1) != drawn(2)
    assert drawn(1)[0] == 3


def test_timestamps_are_given_or_counted_up_or_the_wall_clocks() -> None:
    with TopologyTestDriver(build_upper_app(), start_ms=100) as driver:
        topic = driver.topic("in")
        topic.pipe("k", "v")
        driver.advance_wall_clock(5)
        topic.pipe_many([("k", "v"), ("k", "v", 7), ("k", "v", 8, [("h", b"1")])])
        topic.pipe_many([("k", "v"), Record("k", "v", 3), ("k", "v")], start_ms=20, advance_ms=10)
        read = driver.topic("out").read_all()
        assert [record.timestamp_ms for record in read] == [100, 105, 7, 8, 20, 3, 30]
        assert read[3].headers == (("h", b"1"),)


def test_serdes_are_the_topologys_unless_others_are_given() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.topic("in").pipe("k", "x")
        assert driver.topic("out", value=serdes.bytes).read_pairs() == [("k", (1).to_bytes(8))]
        assert driver.topic("counting-c-changelog").read_pairs() == [("k", 1)]
        with pytest.raises(SerdeError, match=r"'out' can't be read .* Name others: driver\.topic"):
            driver.topic("out", value=serdes.int32).read_table()
        with pytest.raises(SerdeError, match="'in': its value serde 'string' can't write 5"):
            driver.topic("in").pipe("k", 5)


def test_a_topic_that_only_a_record_names_is_there_when_it_is_written() -> None:
    app = App("dynamic")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.to(lambda record: record.value)
    with TopologyTestDriver(app, partitions={"b": 2}) as driver:
        driver.topic("in").pipe_many([("k", "a"), ("k", "b")])
        assert driver.topic("a").read_pairs() == [("k", "a")]
        assert driver.topic("b").read_pairs() == [("k", "b")]
        assert driver.topic("c").is_empty


def test_wrong_records_are_refused_and_nothing_of_them_is_written() -> None:
    with TopologyTestDriver(build_word_count_app()) as driver:
        lines = driver.topic("lines")
        with pytest.raises(ValueError, match="'lines': a timestamp can't be negative: -1"):
            lines.pipe("k", "v", timestamp_ms=-1)
        with pytest.raises(ValueError, match="no partition 1: it has 1"):
            lines.pipe("k", "v", partition=1)
        with pytest.raises(ValueError, match=r"'kv' is no record"):
            lines.pipe_many([("k", "v"), "kv"])  # type: ignore[list-item]
        assert lines.is_empty
        with pytest.raises(ConfigError, match="no step reads topic"):
            driver.topic("counts-by-word").pipe("k", 1)


def test_keys_that_no_dictionary_takes_are_named() -> None:
    app = App("keys")
    app.stream("in", key=serdes.json(), value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe({"a": 1}, "v")
        with pytest.raises(TypeError, match=r"'out' as a table: key \{'a': 1\}.*read_all"):
            driver.topic("out").read_table()


def test_changelogs_are_read_with_the_serdes_of_their_stores() -> None:
    app = App("kept")
    prices = Store.versioned("prices", history=100)
    app.table("in", key=serdes.string, value=serdes.int64, store=prices)
    stream = app.stream("seen", key=serdes.string, value=serdes.string)
    stream.group_by_key().windowed_by(windows.tumbling(10, grace=0)).count(store="c")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", 7)
        driver.topic("seen").pipe("k", "x")
        assert driver.topic("kept-prices-changelog").read_pairs() == [("k", 7)]
        assert driver.topic("kept-c-changelog").read_values() == [1]
