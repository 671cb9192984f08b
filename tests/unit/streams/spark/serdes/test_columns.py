"""Test the columns of records: windows in keys, and the handling of unreadable bytes."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Windowed as WindowedKey
from streams import serdes
from streams.errors import UserError
from streams.spark.serdes.columns import BatchDecoder, RowKind
from streams.spark.serdes.times import SPARK_MS_MAX
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import (
    ParseMode,
    SerdeName,
    SerdeOptions,
    TimeFormat,
    WindowedKeyKind,
)

TIME = SerdeOptions(key=SerdeName.STRING, windowed=WindowedKeyKind.TIME, window_size_ms=1000)


def batch(keys: list[bytes | None], values: list[bytes | None] | None = None) -> RawBatch:
    count = len(keys)
    given = [None] * count if values is None else values
    return RawBatch("t", 3, keys, list(given), [*range(10, 10 + count)], [0] * count, None)


def rows(found: Any, *names: str) -> list[tuple[Any, ...]]:
    """Return the named columns as rows, with the times of windows in ms."""
    columns = [found.column(name).to_pylist() for name in names]
    for name, column in zip(names, columns, strict=True):
        if name.startswith("window"):
            column[:] = [None if each is None else each.timestamp() * 1000 for each in column]
    return [*zip(*columns, strict=True)]


def ms(found: Any, name: str) -> list[int | None]:
    """Return a column of times in ms."""
    column = found.column(name)
    is_number = pa.types.is_integer(column.type)
    micros = column.cast(pa.int64()).to_pylist()
    return [each if is_number or each is None else each // 1000 for each in micros]


WINDOW = ("key", "window_start", "window_end")


def test_windowed_keys_of_a_topic_are_taken_apart() -> None:
    found = BatchDecoder(TIME, "t").decode_batch(batch([b"a" + struct.pack(">q", 5000), None]))
    assert rows(found, *WINDOW) == [("a", 5000, 6000), (None, None, None)]
    assert found.schema.names == [
        "key", "window_start", "window_end", "value", "topic", "partition", "offset", "timestamp",
        "_corrupt_record",
    ]  # fmt: skip


def test_windowed_keys_of_a_store_have_a_sequence_number() -> None:
    keys: list[bytes | None] = [b"a" + struct.pack(">qi", 5000, 7)]
    for columns in (
        BatchDecoder(TIME, "t", RowKind.TABLE),
        BatchDecoder(TIME, "app-counts-changelog"),
    ):
        assert rows(columns.decode_batch(batch(keys)), *WINDOW) == [("a", 5000, 6000)]


def test_sessions_have_their_end_first() -> None:
    options = SerdeOptions(key=SerdeName.STRING, windowed=WindowedKeyKind.SESSION)
    key = b"a" + struct.pack(">qq", 9000, 5000)
    for topic in ("t", "app-counts-changelog"):
        found = BatchDecoder(options, topic).decode_batch(batch([key]))
        assert rows(found, *WINDOW) == [("a", 5000, 9000)]


def test_keys_are_those_that_the_serdes_of_windows_write() -> None:
    written = serdes.windowed(serdes.string, 1000).serialize(WindowedKey("grün", 5000, 6000))
    assert rows(BatchDecoder(TIME, "t").decode_batch(batch([written])), *WINDOW) == [
        ("grün", 5000, 6000)
    ]


def test_a_window_that_has_no_end_or_is_beyond_all_times_is_null_there() -> None:
    options = SerdeOptions(
        key=SerdeName.STRING, windowed=WindowedKeyKind.TIME, window_size_ms=2**63 - 1
    )
    found = BatchDecoder(options, "t").decode_batch(batch([b"a" + struct.pack(">q", 0)]))
    assert rows(found, *WINDOW, "_corrupt_record") == [("a", 0, None, None)]


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (b"short", "a key and 8 bytes of its window are needed"),
        (b"a" + struct.pack(">q", -1), "a window can't be from -1"),
        (b"a" + struct.pack(">q", SPARK_MS_MAX + 1), "its window from 9223372036854776 to"),
        (b"a" + struct.pack(">q", SPARK_MS_MAX), "beyond Spark's TIMESTAMP"),
        (b"a" + struct.pack(">q", 2**63 - 1), "read it with times=ms"),
    ],
)
def test_bytes_that_are_no_window_are_told(key: bytes, cause: str) -> None:
    good = b"b" + struct.pack(">q", 0)
    found = BatchDecoder(TIME, "t").decode_batch(batch([key, good]))
    assert rows(found, *WINDOW) == [(None, None, None), ("b", 0, 1000)]
    said = found.column("_corrupt_record").to_pylist()
    assert said[0].startswith("key of t[3] offset 10 is no windowed key: ")
    assert cause in said[0]
    assert said[1] is None


@pytest.mark.parametrize("start_ms", [0, 253_402_300_800_000, SPARK_MS_MAX - 1000])
def test_windows_after_the_year_9999_are_kept(start_ms: int) -> None:
    found = BatchDecoder(TIME, "t").decode_batch(batch([b"a" + struct.pack(">q", start_ms), None]))
    assert ms(found, "window_start") == [start_ms, None]
    assert ms(found, "window_end") == [start_ms + 1000, None]


@pytest.mark.parametrize(
    ("size_ms", "start_ms", "end_ms"),
    [(1000, 2**62, 2**62 + 1000), (2**62, 2**62, 2**63 - 1), (2**63 - 1, 5, 2**63 - 1)],
)
def test_windows_are_numbers_where_times_are(size_ms: int, start_ms: int, end_ms: int) -> None:
    options = replace(TIME, window_size_ms=size_ms, times=TimeFormat.MS)
    found = BatchDecoder(options, "t").decode_batch(batch([b"a" + struct.pack(">q", start_ms)]))
    assert rows(found, "key", "_corrupt_record") == [("a", None)]
    assert [ms(found, name) for name in WINDOW[1:]] == [[start_ms], [end_ms]]


def test_a_session_whose_end_spark_has_not_is_told() -> None:
    options = SerdeOptions(key=SerdeName.STRING, windowed=WindowedKeyKind.SESSION)
    keys: list[bytes | None] = [b"a" + struct.pack(">qq", 2**62, 5)]
    found = BatchDecoder(options, "t").decode_batch(batch(keys))
    assert "beyond Spark's TIMESTAMP" in found.column("_corrupt_record")[0].as_py()
    numbers = BatchDecoder(replace(options, times=TimeFormat.MS), "t").decode_batch(batch(keys))
    assert [ms(numbers, name) for name in WINDOW[1:]] == [[5], [2**62]]


TIMES = [-1, 0, 1, 253_402_300_800_000, SPARK_MS_MAX, -SPARK_MS_MAX]


@given(st.lists(st.integers(-SPARK_MS_MAX, SPARK_MS_MAX) | st.sampled_from(TIMES)))
def test_every_time_that_spark_has_is_kept(times_ms: list[int]) -> None:
    raw = replace(batch([None] * len(times_ms)), timestamps_ms=times_ms)
    assert ms(BatchDecoder(SerdeOptions(), "t").decode_batch(raw), "timestamp") == times_ms


@pytest.mark.parametrize("mode", ParseMode)
@pytest.mark.parametrize("beyond", [SPARK_MS_MAX + 1, 2**63 - 1, -SPARK_MS_MAX - 1, -(2**63)])
def test_a_time_that_spark_has_not_is_refused_with_its_offset(beyond: int, mode: ParseMode) -> None:
    raw = replace(batch([None, None]), timestamps_ms=[0, beyond])
    told = rf"timestamp of t\[3\] offset 11 is {beyond} ms since 1970.*option times=ms"
    with pytest.raises(UserError, match=told):
        BatchDecoder(both(mode), "t").decode_batch(raw)
    numbers = SerdeOptions(times=TimeFormat.MS)
    assert ms(BatchDecoder(numbers, "t").decode_batch(raw), "timestamp") == [0, beyond]


def test_a_version_that_begins_or_ends_beyond_all_times_of_spark_is_refused() -> None:
    raw = batch([b"k", b"k"])
    decoder = BatchDecoder(SerdeOptions(), "t", RowKind.VERSIONS)
    with pytest.raises(UserError, match=r"valid_to of t\[3\] offset 10 is 9223372036854775807 ms"):
        decoder.decode_batch(raw, ([0, 5], [2**63 - 1, None]))
    found = decoder.decode_batch(raw, ([0, 5], [5, None]))
    assert (ms(found, "valid_from"), ms(found, "valid_to")) == ([0, 5], [5, None])


BAD = batch([b"a", b"\xff"], [b"12345678", b"1234"])


def both(mode: ParseMode) -> SerdeOptions:
    return SerdeOptions(key=SerdeName.STRING, value=SerdeName.INT64, mode=mode)


def test_permissive_keeps_the_row_with_all_that_is_wrong() -> None:
    found = BatchDecoder(both(ParseMode.PERMISSIVE), "t").decode_batch(BAD)
    assert rows(found, "key", "value", "offset")[1] == (None, None, 11)
    fine, said = found.column("_corrupt_record").to_pylist()
    assert fine is None
    assert "key of t[3] offset 11 is no string: " in said
    assert "; value of t[3] offset 11 is no int64: " in said
    assert said.endswith("its 4 bytes begin 31 32 33 34")


def test_dropmalformed_leaves_the_row_out() -> None:
    found = BatchDecoder(both(ParseMode.DROPMALFORMED), "t").decode_batch(BAD)
    assert rows(found, "key", "offset") == [("a", 10)]
    assert "_corrupt_record" not in found.schema.names


def test_failfast_ends_the_read_with_where_and_what() -> None:
    with pytest.raises(UserError) as caught:
        BatchDecoder(both(ParseMode.FAILFAST), "t").decode_batch(BAD)
    said = str(caught.value)
    for part in ("key of t[3] offset 11", "is no string", "1 bytes begin ff", "mode=PERMISSIVE"):
        assert part in said


def test_what_cannot_fail_has_no_column_for_failures() -> None:
    assert "_corrupt_record" not in BatchDecoder(SerdeOptions(), "t").schema.names


def test_headers_are_pairs() -> None:
    raw = RawBatch("t", 0, [b"k"], [None], [0], [0], [[("h", b"\x00"), ("h", None)]])
    found = BatchDecoder(SerdeOptions(headers=True), "t").decode_batch(raw)
    assert found.column("headers").to_pylist() == [
        [{"key": "h", "value": b"\x00"}, {"key": "h", "value": None}]
    ]


def test_no_records_are_a_batch_of_none() -> None:
    found = BatchDecoder(TIME, "t").decode_batch(batch([]))
    assert found.num_rows == 0
