"""Test the records of a topic as of a cut, as a reconciliation and a user's function get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import WrittenRange
from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.inputs import Inputs, TopicRecords
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.frames import exclude_runs_beyond_cut
from tests.brokers import Broker
from tests.spark.topics import Written, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cut_of(topic: str, *offsets: int, written: dict[Partition, int] | None = None) -> Cut:
    read = {Partition(topic, number): at for number, at in enumerate(offsets)}
    return Cut(application_id="reconciled", taken_ms=0, offsets=read, ends=written)


@pytest.fixture(scope="module")
def written(broker: Broker, unique: Callable[[str], str]) -> Written:
    return mixed(broker.bootstrap_servers, unique("inputs"), partitions=2, records=50)


Read = Callable[[Cut], TopicRecords]


@pytest.fixture
def records(spark: SparkSession, broker: Broker) -> Read:
    return lambda cut: TopicRecords(spark, BrokerAccess(broker.bootstrap_servers), cut)


def test_what_was_read_by_the_cut_and_no_more(records: Read, written: Written) -> None:
    found = records(cut_of(written.topic, 20, 0)).read_topic(written.topic).collect()
    wanted = {row for row in written.rows() if row.partition == 0 and row.offset < 20}
    assert wanted
    assert {(row.partition, row.offset) for row in found} == {
        (row.partition, row.offset) for row in wanted
    }


def test_what_was_written_from_some_offset_on(records: Read, written: Written) -> None:
    ends = {Partition(written.topic, 0): 30, Partition(written.topic, 1): 5}
    cut = cut_of("other", 0, written=ends)
    begins = {Partition(written.topic, 0): 10}
    found = records(cut).read_written_up_to_cut(written.topic, begins).collect()
    assert {(row.partition, row.offset) for row in found} == {
        (row.partition, row.offset)
        for row in written.rows()
        if (row.partition == 0 and 10 <= row.offset < 30) or (row.partition == 1 and row.offset < 5)
    }


def test_a_thousand_runs_that_are_not_in_the_cut_are_left_out(spark: SparkSession) -> None:
    """Exclude so many runs that a condition for each would be too deep for Spark's planner."""
    runs = tuple(WrittenRange(3 * number, 3 * number) for number in range(1_000))
    cut = replace(cut_of("in", 0), beyond={Partition("out", 1): runs})
    offsets = spark.range(4_000).selectExpr("id AS offset")
    rows = offsets.selectExpr("'out' AS topic", "explode(array(0, 1)) AS partition", "offset")
    counts = exclude_runs_beyond_cut(rows, cut).groupBy("partition").count().collect()
    assert {row["partition"]: row["count"] for row in counts} == {0: 4_000, 1: 3_000}


def test_what_the_cut_does_not_tell_is_refused(records: Read) -> None:
    with pytest.raises(ConfigError, match="says nothing of topic 'stranger'"):
        records(cut_of("other", 0, written={})).read_topic("stranger")
    with pytest.raises(ConfigError, match=r"can't be told.*ledger=True"):
        records(cut_of("other", 0)).read_topic("stranger")


def test_one_input_is_a_dataframe_and_a_mapping(records: Read, written: Written) -> None:
    app = App("reconciled")
    app.stream(written.topic, key=serdes.string, value=serdes.bytes).to("out")
    inputs = Inputs(app.topology(), records(cut_of(written.topic, 20, 20)))
    assert list(inputs) == [written.topic]
    assert inputs[written.topic].count() == inputs.count() > 0
    assert inputs.select(inputs["key"]).count() == inputs.count()
    with pytest.raises(ConfigError, match=rf"'another' is no input.*{written.topic}"):
        inputs.decoded("another")


def test_of_several_inputs_one_is_named(records: Read) -> None:
    app = App("reconciled")
    for topic in ("these", "those"):
        app.stream(topic, key=serdes.string, value=serdes.string).to("out")
    inputs = Inputs(app.topology(), records(cut_of("these", 0)))
    with pytest.raises(ConfigError, match=r"reads these, those.*inputs\['these'\]"):
        inputs.select("key")
