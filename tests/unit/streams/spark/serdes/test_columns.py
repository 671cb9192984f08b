"""Test the columns of records: windows in keys, and the handling of unreadable bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from streams import Windowed as WindowedKey
from streams import serdes
from streams.errors import UserError
from streams.spark.serdes.columns import BatchDecoder, RowKind
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import ParseMode, SerdeName, SerdeOptions, WindowedKeyKind

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
    given = SerdeOptions(key=SerdeName.STRING, windowed=WindowedKeyKind.SESSION)
    key = b"a" + struct.pack(">qq", 9000, 5000)
    for topic in ("t", "app-counts-changelog"):
        found = BatchDecoder(given, topic).decode_batch(batch([key]))
        assert rows(found, *WINDOW) == [("a", 5000, 9000)]


def test_keys_are_those_that_the_serdes_of_windows_write() -> None:
    written = serdes.windowed(serdes.string, 1000).serialize(WindowedKey("grün", 5000, 6000))
    assert rows(BatchDecoder(TIME, "t").decode_batch(batch([written])), *WINDOW) == [
        ("grün", 5000, 6000)
    ]


def test_a_window_that_has_no_end_or_is_beyond_all_times_is_null_there() -> None:
    given = SerdeOptions(
        key=SerdeName.STRING, windowed=WindowedKeyKind.TIME, window_size_ms=2**63 - 1
    )
    found = BatchDecoder(given, "t").decode_batch(batch([b"a" + struct.pack(">q", 0)]))
    assert rows(found, *WINDOW, "_corrupt_record") == [("a", 0, None, None)]


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (b"short", "a key and 8 bytes of its window are needed"),
        (b"a" + struct.pack(">q", -1), "a window can't be from -1"),
        (b"a" + struct.pack(">q", 2**62), "a window can't be from"),
    ],
)
def test_bytes_that_are_no_window_are_told(key: bytes, cause: str) -> None:
    good = b"b" + struct.pack(">q", 0)
    found = BatchDecoder(TIME, "t").decode_batch(batch([key, good]))
    assert rows(found, *WINDOW) == [(None, None, None), ("b", 0, 1000)]
    said = found.column("_corrupt_record").to_pylist()
    assert f"key of t[3] offset 10 is no windowed key: {cause}" in said[0]
    assert said[1] is None


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
