"""Test that unwritable rows are refused together before any is written; and the rows' digest."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from streams.errors import ConfigError, UserError
from streams.spark.serdes.ddl import parse_type
from streams.spark.serdes.times import SPARK_MS_MAX
from streams.spark.sink.epochs import ProducerRows, Tally
from streams.spark.sink.writing import check_columns, encode_rows
from streams.spark.source.options import parse_write_options
from tests.sampling import draw_seed

GIVEN = {"bootstrap_servers": "localhost:1", "topic": "t", "value": "string"}

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def columns(ddl: str) -> StructType:
    found = parse_type(f"struct<{ddl}>")
    assert isinstance(found, StructType)
    return found


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("key: string", "no column value"),
        ("value: string, vlaue: string", "column 'vlaue' can't be written"),
        ("value: int", "column value is int32, and option value=string writes none of that"),
        ("value: string, partition: string", "column partition is string: it must be an integer"),
        ("value: string, timestamp: string", "column timestamp is string: it must be a timestamp"),
        ("value: string, timestamp: date", "column timestamp is date32"),
        ("value: string, headers: array<string>", "it must be an array of struct<key: string"),
    ],
)
def test_columns_that_are_no_record_are_told(ddl: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_columns(parse_write_options(GIVEN, is_stream=False), columns(ddl), overwrite=False)


def test_two_columns_of_one_name_are_refused() -> None:
    twice = StructType().add("value", StringType()).add("value", StringType())
    with pytest.raises(ConfigError, match="there are 2 columns 'value': leave one"):
        check_columns(parse_write_options(GIVEN, is_stream=False), twice, overwrite=False)


def test_what_a_read_gives_can_be_written() -> None:
    ddl = "key: binary, value: string, topic: string, partition: int, offset: bigint"
    check_columns(
        parse_write_options(GIVEN, is_stream=True),
        columns(f"{ddl}, timestamp: timestamp"),
        overwrite=False,
    )


def test_json_is_written_by_the_columns_alone() -> None:
    options = parse_write_options(GIVEN | {"key": "json", "value": "json"}, is_stream=False)
    assert options.serdes.value_schema is None
    check_columns(
        options, columns("key: struct<a: int>, value: struct<n: bigint>"), overwrite=False
    )


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("partition", pa.array([0, -1, None]), "names partition -1: there can't be one"),
        ("partition", pa.array([1, 1 << 31]), "names partition 2147483648: there can't be one"),
        ("timestamp", pa.array([5, -5], pa.timestamp("ms")), "has -5 ms since 1970"),
        ("timestamp", pa.array([5, 0]), "has 0 ms since 1970"),
        ("timestamp", pa.array([-1500], pa.timestamp("us")), "has -2 ms since 1970"),
        ("timestamp", pa.array([-(2**63)]), "has -9223372036854775808 ms since 1970"),
        ("headers", pa.array([[{"key": None, "value": b"v"}]], HEADERS), "or has no key"),
        ("headers", pa.array([[], [None]], HEADERS), "a header that is null"),
    ],
)
def test_rows_that_are_no_record_are_told(column: str, values: pa.Array, problem: str) -> None:
    names = {"value": pa.array(["v"] * len(values)), column: values}
    with pytest.raises(UserError, match=problem):
        encode_rows(parse_write_options(GIVEN, is_stream=False), pa.RecordBatch.from_pydict(names))


@pytest.mark.parametrize(
    ("times", "written"),
    [
        (pa.array([1999, 1000, None], pa.timestamp("us", tz="UTC")), [1, 1, None]),
        (pa.array([2**63 - 1], pa.timestamp("us")), [SPARK_MS_MAX]),
        (pa.array([-1000], pa.timestamp("us")), [-1]),
        (pa.array([2**63 - 1, -1, None, 1]), [2**63 - 1, -1, None, 1]),
        (pa.array([7], pa.int32()), [7]),
        (pa.array([], pa.timestamp("us")), []),
    ],
)
def test_times_of_records_are_timestamps_or_ms(times: pa.Array, written: list[int | None]) -> None:
    rows = pa.RecordBatch.from_pydict({"value": pa.array(["v"] * len(times)), "timestamp": times})
    found = encode_rows(parse_write_options(GIVEN, is_stream=False), rows)
    assert found.timestamps_ms == written


def test_a_topic_is_not_overwritten() -> None:
    with pytest.raises(ConfigError, match=r"use mode\('append'\)"):
        check_columns(
            parse_write_options(GIVEN, is_stream=False), columns("value: string"), overwrite=True
        )


@pytest.mark.parametrize("name", ["transactional.id", "enable.idempotence", "acks", "partitioner"])
def test_settings_that_the_guarantee_needs_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"option kafka.{name} can't be set"):
        parse_write_options(GIVEN | {f"kafka.{name}": "1"}, is_stream=True)


def test_a_stream_has_no_write_id() -> None:
    with pytest.raises(ConfigError, match="option write_id is not for a streaming write"):
        parse_write_options(GIVEN | {"write_id": "w"}, is_stream=True)


def tally(rows: list[tuple[bytes | None, bytes | None]]) -> Tally:
    found = Tally()
    found.add_rows(ProducerRows([key for key, _ in rows], [value for _, value in rows]))
    return found


def test_the_order_of_rows_does_not_matter_and_all_else_does() -> None:
    seed = draw_seed("rows in any order")
    choose = random.Random(seed)
    few = [None, b"", b"a", b"b", b"ab"]
    rows = [(choose.choice(few), choose.choice(few)) for _ in range(50)]
    again = choose.sample(rows, len(rows))
    assert tally(again) == tally(rows), f"{seed=}"
    for at, (key, value) in enumerate(rows):
        for other in few:
            changed = [*rows[:at], (other, value), *rows[at + 1 :]]
            assert (tally(changed) == tally(rows)) == (other == key), f"{seed=} {at=} {other=}"
            changed = [*rows[:at], (key, other), *rows[at + 1 :]]
            assert (tally(changed) == tally(rows)) == (other == value), f"{seed=} {at=} {other=}"
    assert tally([(b"ab", b"")]) != tally([(b"a", b"b")])
    assert tally([(b"", None)]) != tally([(None, b"")])
    assert Tally.from_metadata(tally(rows).to_metadata()) == tally(rows)
    assert Tally.from_metadata("another's") is None
