"""Test limits of a read, filters and coverage, and messages of limits that can't be met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.common.topic_partitions import Partition
from streams.spark import Cut
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import Broker
from tests.spark.reading import load, rows
from tests.spark.topics import Record, Written, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4, by="test")

FIRST_MS = 1_767_225_600_000


@pytest.fixture(scope="module")
def two(broker: Broker, unique: Callable[[str], str]) -> Written:
    """Write two partitions of 60 committed records each, with much between them."""
    return mixed(broker.bootstrap_servers, unique("limits"), partitions=2, records=60)


@contextmanager
def refused() -> Iterator[list[str]]:
    """Provide what Spark shows of the error that is met within the block."""
    said: list[str] = []
    with pytest.raises(Exception) as met:  # noqa: PT011 Spark's own, of several kinds
        yield said
    said.append(str(met.value))


def between(written: Written, first: int, until: int) -> set[Record]:
    return {each for each in written.committed if first <= each.offset < until}


def test_partitions_and_offsets(spark: SparkSession, broker: Broker, two: Written) -> None:
    def found(**options: str) -> set[Record]:
        return set(rows(load(spark, broker, two.topic, **options)))

    assert found(partitions="1") == {each for each in two.committed if each.partition == 1}
    assert found(offsets_from="20", offsets_to="70") == between(two, 20, 70)
    each = found(offsets_from='{"0": 30}', offsets_to='{"1": "earliest"}')
    assert each == {r for r in two.committed if r.partition == 0 and r.offset >= 30}


def test_times_are_each_records_own(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    """Read records in no order of time, with markers between them that carry the broker's time."""
    written = Written(broker.bootstrap_servers, unique("times"))
    for number in (0, 2, 1, 4, 3, 5):
        key, at_ms = b"%d" % number, FIRST_MS + 1000 * number
        written.transaction([(0, key, key)], timestamp=at_ms)
        written.transaction([(0, b"no", b"no")], commit=False, timestamp=at_ms)

    def keys(**options: str) -> list[bytes | None]:
        return [each.key for each in rows(load(spark, broker, written.topic, **options))]

    begin, end = str(FIRST_MS + 1500), "2026-01-01T00:00:04Z"
    assert keys(timestamps_from=begin, timestamps_to=end) == [b"2", b"3"]
    assert keys(timestamps_from=begin) == [b"2", b"4", b"3", b"5"]
    assert keys(timestamps_from=str(FIRST_MS + 60_000)) == []
    assert keys(timestamps_to=f'{{"0": {FIRST_MS + 1}}}') == [b"0"]


def test_a_cut_is_an_end(spark: SparkSession, broker: Broker, two: Written) -> None:
    places = {Partition(two.topic, 0): 40, Partition(two.topic, 1): 50}
    read = Cut(application_id="app", taken_ms=0, offsets=places)
    wrote = Cut(application_id="app", taken_ms=0, offsets={}, ends=places)
    expected = {r for r in two.committed if r.offset < (50 if r.partition else 40)}
    for cut in (read, wrote):
        assert set(rows(load(spark, broker, two.topic, cut=cut.to_json()))) == expected
    for cut, why in (
        (Cut(application_id="app", taken_ms=0, offsets={}, ends={}), "says nothing of"),
        (Cut(application_id="app", taken_ms=0, offsets={}), "where its outputs ended"),
        (Cut(application_id="app", taken_ms=0, offsets=dict.fromkeys(places, 10**6)), "1000000"),
    ):
        with refused() as said:
            rows(load(spark, broker, two.topic, cut=cut.to_json()))
        assert why in said[0]


def test_coverage_accounts_for_every_offset(
    spark: SparkSession, broker: Broker, two: Written
) -> None:
    frame = load(spark, broker, two.topic, content="coverage", records_per_split=25)
    splits = frame.collect()
    assert sum(each.records for each in splits) == len(two.committed)
    assert sum(each.no_records for each in splits) > len(two.committed)
    for each in splits:
        inside = {r for r in two.committed if r.partition == each.partition}
        inside = {r for r in inside if each.first <= r.offset < each.until}
        assert each.records == len(inside)
        assert each.records + each.no_records == each.until - each.first


def test_offsets_that_are_gone_are_an_error_and_never_silently_less(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    written = Written(broker.bootstrap_servers, unique("gone"))
    written.transaction([(0, b"%d" % n, b"") for n in range(20)])
    planned = load(spark, broker, written.topic).rdd
    assert planned.getNumPartitions() == 1
    BrokerAccess(broker.bootstrap_servers).create_admin().delete_records(
        {Partition(written.topic, 0): 10}
    )
    with refused() as said:
        planned.count()
    assert "some of them are gone: the log now has 10 to 20" in said[0]
    assert {each.offset for each in rows(load(spark, broker, written.topic))} == set(range(10, 20))
    for options, why in (
        ({"offsets_from": "5"}, "offsets 5 to 20 are asked for, and there are 10 to 20"),
        ({"offsets_from": "6"}, "[0] below offset 10 are gone, removed with DeleteRecords"),
        ({"offsets_to": "100"}, "10 to 99 are asked for, and there are 10 to 20"),
        ({"offsets_from": "15", "offsets_to": "3"}, "are asked for, and there are 10 to 20"),
    ):
        with refused() as said:
            rows(load(spark, broker, written.topic, **options))
        assert why in said[0]


def test_filters_are_pushed_down_where_the_session_has_that_on(
    spark: SparkSession, broker: Broker, two: Written
) -> None:
    frame = load(spark, broker, two.topic, records_per_split=10)
    wanted = "partition = 1 and offset >= 30 and offset < 50"
    expected = {r for r in between(two, 30, 50) if r.partition == 1}
    conf = "spark.sql.python.filterPushdown.enabled"
    tasks = []
    for on in ("false", "true"):
        spark.conf.set(conf, on)
        try:
            narrowed = frame.where(wanted)
            assert set(rows(narrowed)) == expected
            tasks.append(narrowed.rdd.getNumPartitions())
            assert set(rows(frame)) == two.rows()
        finally:
            spark.conf.unset(conf)
    assert tasks[1] == 2 < tasks[0]


def test_wrong_input_is_one_clear_message(
    spark: SparkSession, broker: Broker, two: Written, tmp_path: Path
) -> None:
    similar = two.topic.replace("limits", "limit")
    cases: list[tuple[str, dict[str, str], str]] = [
        (similar, {}, f"there is no topic '{similar}'; similar ones are {two.topic}"),
        (two.topic, {"partitions": "0-5"}, f"names partition 2: {two.topic} has 2, from 0 on"),
        (two.topic, {"offset_to": "5"}, "did you mean 'offsets_to'?"),
        (two.topic, {"offsets_to": "five"}, "can't be 'five'"),
        (two.topic, {"kafka.sasl.mechanisms.x": "5"}, "sasl.mechanisms.x"),
        (two.topic, {"bootstrap_servers": "127.0.0.1:1"}, "no Kafka broker answers"),
    ]
    for topic, options, why in cases:
        with refused() as said:
            rows(load(spark, broker, topic, **options))
        assert why in said[0]
    with refused() as said:
        spark.read.format("millrace").schema("a INT").options(
            bootstrap_servers=broker.bootstrap_servers, topic=two.topic
        ).load().collect()
    assert "leave it out" in said[0]


def test_secrets_are_not_shown_in_plans(
    spark: SparkSession, broker: Broker, two: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = {
        "kafka.sasl.password": "open-sesame",
        "kafka.ssl.key.password": "open-sesame",
        "kafka.ssl.key.pem": "open-sesame",
    }
    frame = load(spark, broker, two.topic, **secrets).select("key")
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode)
    shown = capsys.readouterr().out
    assert "key" in shown
    assert "open-sesame" not in shown
