"""Test that the old and new value of a table's row are encoded in Kafka Streams' own bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import serdes
from streams.common.changes import Change
from tests.unit.streams.serdes.kafka_bytes import CHANGES, READ_ONLY, Read, Row

SERDE = serdes.changed(serdes.string)


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.data[-8:])
def test_a_change_lies_as_kafka_streams_writes_it(case: Row) -> None:
    assert SERDE.serialize(Change(case.new, case.old)).hex() == case.data
    assert SERDE.deserialize(bytes.fromhex(case.data)) == Change(case.new, case.old, True)


@pytest.mark.parametrize("case", READ_ONLY, ids=lambda case: case.data)
def test_a_change_that_says_whether_it_is_the_latest_is_read(case: Read) -> None:
    change = Change(case.new, case.old, case.latest)
    assert SERDE.deserialize(bytes.fromhex(case.data)) == change


def test_whether_it_is_the_latest_is_not_written() -> None:
    data = SERDE.serialize(Change("new", "old", latest=False))
    assert data == SERDE.serialize(Change("new", "old", latest=True))


@given(st.binary() | st.none(), st.binary() | st.none())
def test_changes_round_trip(new: bytes | None, old: bytes | None) -> None:
    serde = serdes.changed(serdes.bytes)
    if new is None and old is None:
        with pytest.raises(ValueError, match="neither"):
            serde.serialize(Change(new, old))
        return
    assert serde.deserialize(serde.serialize(Change(new, old))) == Change(new, old)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got none"),
        (b"x\x06", "0 to 5, got 6"),
        (b"\x03", "must be 0 or 1"),
        (b"new\x02\x04", "must be 0 or 1"),
        (b"\x02", "length first"),
        (b"\x80\x80\x80\x80\x80\x80\x02", "length first"),
        (b"\x08new\x02", "4 bytes: 3 are there"),
        (b"\x01new\x02", "-1 bytes"),
    ],
)
def test_bytes_of_no_change_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SERDE.deserialize(data)


@pytest.mark.parametrize("value", ["new", 7, ("new", "old"), None])
def test_what_is_no_change_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=f"needs a Change, got {type(value).__name__}: "):
        SERDE.serialize(value)


def test_a_change_reads_as_in_kafka_streams() -> None:
    assert str(Change("new", "old")) == "(new<-old)"
    new, old, latest = Change("new", "old")
    assert (new, old, latest) == ("new", "old", True)
