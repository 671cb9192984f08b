"""Test that foreign-key joins write the records of Kafka Streams 4.3.0 to every topic on the way.

The files in kafka_streams/ were written by its own TopologyTestDriver. A line "> topic, key, value,
@timestamp" is a record that is piped; the lines after it are the records that it causes (topic,
key, value, timestamp, headers; internal topics in hex).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streams import App, Store, StreamsError, TopologyError, TopologyTestDriver, serdes
from streams.common.murmur3 import murmur3_hash128
from streams.dsl.table import Table
from streams.runtime.threads.commit import CommitStep
from streams.serdes.foreign_key_messages import (
    SubscriptionInstruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
    create_response_serde,
    create_subscription_serde,
)

BOTH: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
RAW: dict[str, Any] = {"key": serdes.bytes, "value": serdes.bytes}
UNCACHED = Store.in_memory("rows", caching=False)
RUNS = Path(__file__).parent / "kafka_streams"
TOPICS = ("out", "registration-topic", "response-topic", "store-changelog")


def joined(kind: str, **stores: str | Store | None) -> App:
    """Build a foreign-key join of rows whose value begins with the foreign key, or with "-"."""
    app = App("app")
    left = app.table("left", **BOTH, store=stores.get("left"))
    right = left if "self" in kind else app.table("right", **BOTH, store=stores.get("right"))
    join = left.left_join if "left" in kind else left.join
    result: Table[str, str] = join(
        right,
        lambda row, other: f"{row}|{other or 'null'}",
        foreign_key=lambda key, row: None if row.startswith("-") else row[0],
        value=serdes.string,
        store=stores.get("result"),
        name="j",
    )
    result.to_stream().to("out")
    return app


def beside(row: str, other: str) -> str:
    return f"{row}|{other}"


def uncached(kind: str) -> App:
    kept = {name: Store.in_memory(name, caching=False) for name in ("left", "right", "result")}
    return joined(kind, **kept)


def recorded(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the recorded inputs of a run, each with the lines that Kafka Streams wrote for it."""
    for step in (RUNS / f"foreign_key_{kind}.txt").read_text().split("> ")[1:]:
        piped, *came = step.splitlines()
        yield piped, [line.strip() for line in came]


def read(driver: TopologyTestDriver) -> list[str]:
    """Return the records of the driver's topics in the notation of the recorded files."""
    lines = []
    for topic in TOPICS:
        name = topic if topic == "out" else f"app-j-subscription-{topic}"
        for record in driver.topic(name, **RAW).read_all():
            pair = [
                "null" if part is None else part.decode() if topic == "out" else part.hex()
                for part in (record.key, record.value)
            ]
            headers = [f"{header}={(value or b'').hex()}" for header, value in record.headers]
            lines.append(" | ".join([topic, *pair, str(record.timestamp_ms), *headers]))
    return lines


@pytest.mark.parametrize("kind", ["inner", "left", "inner_self", "left_self"])
def test_every_topic_has_what_kafka_streams_writes(kind: str) -> None:
    with TopologyTestDriver(uncached(kind), stores="memory") as driver:
        for piped, came in recorded(kind):
            topic, key, value, time = piped.split()
            headers = [("h", f"h{time[1:]}".encode())]
            driver.topic(topic).pipe(
                key, None if value == "null" else value, int(time[1:]), headers
            )
            assert read(driver) == came, piped


def test_its_steps_stores_and_topics_have_kafka_streams_names() -> None:
    described = joined("inner").describe()
    for name in (
        "j-subscription-registration-processor",
        "j-subscription-registration-sink (topic: app-j-subscription-registration-topic)",
        "j-subscription-receive (stores: [j-subscription-store])",
        "j-foreign-join-subscription (stores: [j-subscription-store])",
        "j-subscription-response-source (topics: [app-j-subscription-response-topic])",
        "j-subscription-response-resolver (stores: [KTABLE-SOURCE-0000000001-STATE-STORE])",
        "j-result (stores: [])",
    ):
        assert name in described


def test_the_internal_topics_have_the_partitions_of_the_table_that_reads_them() -> None:
    topology = joined("left").topology()
    assert topology.derive_partition_counts({"left": 3, "right": 5}) == {
        "left": 3,
        "app-j-subscription-response-topic": 3,
        "right": 5,
        "app-j-subscription-registration-topic": 5,
    }


def expected(kind: str, left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    result = {}
    for key, row in left.items():
        other = None if row[0] == "-" else right.get(row[0])
        if other is not None or kind == "left":
            result[key] = f"{row}|{other or 'null'}"
    return result


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("seed", range(4))
def test_over_several_partitions_in_any_order_the_table_is_right_in_the_end(
    seed: int, kind: str, caching: bool
) -> None:
    random = Random(seed)
    tables: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    app = joined(kind) if caching else uncached(kind)
    counts = {"left": 3, "right": 2}
    with TopologyTestDriver(app, partitions=counts, seed=seed, stores="memory") as driver:
        for batch in range(5):
            driver.crash(
                at=random.choice([CommitStep.PROCESSED, CommitStep.PRODUCED, CommitStep.COMMITTED])
            )
            for topic in ("left", "right"):
                records = []
                for number in range(12):
                    key = random.choice("123456" if topic == "left" else "abc")
                    value = random.choice(["a", "b", "c", "d", "-", None])
                    if value is not None:
                        value += f"{batch}{number}"
                    records.append((key, value))
                    if value is None:
                        tables[topic].pop(key, None)
                    else:
                        tables[topic][key] = value
                driver.topic(topic).pipe_many(records, start_ms=batch * 100 + 1, advance_ms=3)
            driver.restart()
            wanted = expected(kind, tables["left"], tables["right"])
            assert driver.topic("out").read_table() == wanted, f"{seed=} {batch=}"


def test_an_answer_that_was_overtaken_is_dropped() -> None:
    with TopologyTestDriver(uncached("left")) as driver:
        driver.topic("right").pipe("a", "A", 1)
        driver.topic("left").pipe("1", "a-now", 2)
        driver.topic("out").read_all()
        late = SubscriptionResponseWrapper(murmur3_hash128(b"a-then"), "A", 0)
        driver.topic("app-j-subscription-response-topic").pipe("1", late, 3)
        assert driver.topic("out").is_empty
        assert driver.metrics()["dropped"] == 1
        in_time = SubscriptionResponseWrapper(murmur3_hash128(b"a-now"), "A2", 0)
        driver.topic("app-j-subscription-response-topic").pipe("1", in_time, 4)
        assert driver.topic("out").read_values() == ["a-now|A2"]


def test_an_answer_goes_to_the_partition_of_its_row_wherever_its_key_belongs() -> None:
    counts = {"left": 4, "right": 1}
    with TopologyTestDriver(uncached("inner"), partitions=counts) as driver:
        driver.topic("right").pipe("a", "A", 1)
        for partition in range(4):
            driver.topic("left").pipe("1", f"a{partition}", 2, partition=partition)
        answers = driver.topic("app-j-subscription-response-topic").read_all()
        assert [each.partition for each in answers] == [0, 1, 2, 3]
        assert driver.topic("out").read_values() == [f"a{n}|A" for n in range(4)]


def test_a_table_that_lies_in_a_way_of_its_own_is_found_there() -> None:
    def by_letter(key: str, value: None, partitions: int) -> int:
        assert value is None
        return ord(key) % partitions

    app = App("app")
    left, right = app.table("left", **BOTH), app.table("right", **BOTH)
    joined = left.left_join(
        right,
        lambda row, other: f"{row}|{other}",
        foreign_key=lambda key, row: None if row == "-" else row,
        other_partitioner=by_letter,
        value=serdes.string,
    )
    joined.to_stream().to("out")
    with TopologyTestDriver(app, partitions={"left": 2, "right": 5}) as driver:
        for key in "abcde":
            driver.topic("right").pipe(key, key.upper(), 1, partition=ord(key) % 5)
            driver.topic("left").pipe(f"of-{key}", key, 2)
        driver.topic("left").pipe("none", "-", 3)
        wanted = {f"of-{key}": f"{key}|{key.upper()}" for key in "abcde"} | {"none": "-|None"}
        assert driver.topic("out").read_table() == wanted


def test_a_row_that_refers_to_itself_is_deleted_once() -> None:
    app = App("app")
    table = app.table("in", **BOTH)
    joined = table.join(table, beside, foreign_key=lambda key, row: key, value=serdes.string)
    joined.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", 1)
        driver.topic("in").pipe("k", None, 2)
        assert driver.topic("out").read_values() == ["v|v", None]


def test_a_row_that_changes_twice_in_one_go_leaves_no_result_of_what_it_was() -> None:
    """Test that no stale result remains, as it does in Kafka Streams (docs/decisions/0024)."""
    app = App("app")
    rows = app.stream("left", **BOTH).flat_map_values(str.split).to_table(store=UNCACHED)
    right = app.table("right", **BOTH)
    joined = rows.join(
        right,
        beside,
        foreign_key=lambda key, row: None if row == "-" else row[0],
        value=serdes.string,
    )
    joined.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("right").pipe("b", "B", 1)
        for key in "12":
            driver.topic("left").pipe(key, "b1", 2)
        driver.topic("left").pipe("1", "c1 c2", 3)
        driver.topic("left").pipe("2", "c1 - - c3", 4)
        assert driver.topic("out").read_table() == {}


def test_rows_of_a_versioned_table_that_come_late_are_passed_over() -> None:
    app = joined("inner", left=Store.versioned("l", history=100), right=Store.in_memory("r"))
    with TopologyTestDriver(app) as driver:
        driver.topic("right").pipe("a", "A", 1)
        driver.topic("right").pipe("b", "B", 1)
        driver.topic("left").pipe("1", "a", 10)
        driver.topic("left").pipe("1", "b", 5)
        assert driver.topic("out").read_pairs() == [("1", "a|A")]


def test_a_function_that_fails_is_for_the_handler() -> None:
    app = App("app", processing_handler="skip")
    left, right = app.table("left", **BOTH), app.table("right", **BOTH)
    left.join(
        right,
        lambda row, other: str(int(row) + int(other)),
        foreign_key=lambda key, row: str(len(row)) if row.isdigit() else row[99],
        value=serdes.string,
    ).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("right").pipe("2", "x", 1)
        driver.topic("left").pipe("1", "short", 2)  # No foreign key can be extracted.
        driver.topic("left").pipe("2", "10", 3)  # This row has no match.
        driver.topic("right").pipe("2", "20", 4)
        assert driver.topic("out").read_values() == ["30"]


def test_a_row_that_cannot_be_computed_when_it_is_asked_for_is_for_the_handler() -> None:
    """Test that the handler gets the error of a row that can't be computed when it is looked up.

    The row went into the store of the table's source, though its update was skipped.
    """
    app = App("app", processing_handler="skip")
    tables: list[Table[str, str]] = [app.table(name, **BOTH) for name in ("left", "right")]
    left, right = (table.map_values(lambda value: str(int(value))) for table in tables)
    joined = left.join(right, "{}|{}".format, foreign_key=lambda key, row: "f", value=serdes.string)
    joined.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        left_topic, right_topic = driver.topic("left"), driver.topic("right")
        left_topic.pipe("a", "1", 1)
        left_topic.pipe("b", "1", 1)
        left_topic.pipe("a", "bad", 2)
        right_topic.pipe("f", "7", 3)
        right_topic.pipe("f", "bad", 4)
        left_topic.pipe("b", "2", 5)
        right_topic.pipe("f", "8", 6)  # The old value can't be computed.
        right_topic.pipe("f", "9", 7)
        assert driver.topic("out").read_pairs() == [("b", "1|7"), ("b", "2|9")]


def test_subscriptions_of_version_0_are_read_and_written_as_they_came() -> None:
    serde = create_subscription_serde(serdes.string)
    old = bytes((0, 3)) + b"h" * 16 + b"row"
    asks = SubscriptionWrapper(
        b"h" * 16, SubscriptionInstruction.SUBSCRIBE_RESPOND_IF_FOUND, "row", None
    )
    assert serde.deserialize(old) == asks
    assert serde.serialize(asks) == old
    gone = asks._replace(hash=None, partition=7)
    assert serde.deserialize(serde.serialize(gone)) == gone


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (create_subscription_serde(serdes.string), b""),
        (create_subscription_serde(serdes.string), b"\x81\x01"),
        (create_subscription_serde(serdes.string), b"\x81\x04row\0\0\0\0"),
        (create_subscription_serde(serdes.string), b"\x02\x01" + b"h" * 30),
        (create_subscription_serde(serdes.string), b"\x01\x01" + b"h" * 10),
        (create_response_serde(serdes.string), b""),
        (create_response_serde(serdes.string), b"\x01" + b"h" * 16),
        (create_response_serde(serdes.string), b"\x00" + b"h" * 15),
    ],
)
def test_bytes_that_are_none_of_theirs_are_refused(serde: serdes.Serde[Any], data: bytes) -> None:
    with pytest.raises(ValueError, match=r"is no subscription|too short|later release|too few"):
        serde.deserialize(data)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda a, b: a.outer_join(b, max, foreign_key=max), "outer_join takes no foreign_key"),
        (lambda a, b: a.join("b", max, foreign_key=max), "joins a table with another one"),
        (lambda a, b: a.join(b, max, foreign_key="x"), "needs a function, got 'x'"),
        (lambda a, b: a.join(b, "x", foreign_key=max), "needs a function, got 'x'"),
        (lambda a, b: a.join(b, max, foreign_key=lambda row: row), r"with \(key, value\)"),
        (lambda a, b: a.join(b, max, other_partitioner=max), "for joins by a foreign_key"),
        (
            lambda a, b: a.join(b, max, foreign_key=max, other_partitioner=lambda key: 0),
            r"with \(key, value, partitions\)",
        ),
        (lambda a, b: App("b").table("x", **BOTH).join(b, max, foreign_key=max), "applications"),
    ],
)
def test_what_cannot_be_joined_is_refused(wrong: Any, message: str) -> None:
    app = App("app")
    with pytest.raises(TopologyError, match=message):
        wrong(app.table("left", **BOTH), app.table("right", **BOTH))


def test_a_result_that_is_kept_needs_its_serde() -> None:
    app = App("app")
    left, right = app.table("left", **BOTH), app.table("right", **BOTH)
    with pytest.raises(TopologyError, match="needs a value serde"):
        left.join(right, max, foreign_key=lambda key, row: row, store="kept", name="j")


def test_a_value_that_its_serde_refuses_names_the_step() -> None:
    app = App("app")
    left = app.table("left", **BOTH)
    right = app.table("right", key=serdes.int64, value=serdes.string)
    left.join(right, max, foreign_key=lambda key, row: 2**80, value=serdes.string, name="j")
    with TopologyTestDriver(app) as driver, pytest.raises(StreamsError, match="'j-subscription"):
        driver.topic("left").pipe("1", "x", 1)


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_what_comes_and_goes_between_two_commits_is_neither_asked_for_nor_joined(kind: str) -> None:
    """Test that caching skips a row that comes and goes between commits (docs/decisions/0022)."""
    with TopologyTestDriver(joined(kind), commit="manual") as driver:
        subscriptions = driver.topic("app-j-subscription-registration-topic")
        answers = driver.topic("app-j-subscription-response-topic")
        driver.topic("right").pipe("a", "A", 1)
        driver.commit()
        driver.topic("left").pipe("1", "a-now", 2)
        answers.pipe("1", SubscriptionResponseWrapper(murmur3_hash128(b"of before"), None, 0), 3)
        driver.topic("left").pipe("1", None, 4)
        driver.topic("right").pipe("b", "B", 5)
        subscriptions.pipe(
            "b",
            SubscriptionWrapper(
                murmur3_hash128(b"b-it"), SubscriptionInstruction.SUBSCRIBE_AND_RESPOND, "2", 0
            ),
            6,
        )
        driver.topic("right").pipe("b", None, 7)
        driver.commit()
        asked = [each for each in subscriptions.read_all() if each.value.key == "1"]
        assert asked == []
        assert [each.value.value for each in answers.read_all() if each.key == "2"] == [None]
        assert driver.topic("out").read_table() == {}
