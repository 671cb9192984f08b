"""Serdes: what goes in comes out, in Kafka's own layout, and bad input is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import serdes
from streams.serdes import Serde


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_round_trip(value: str) -> None:
    assert serdes.string.deserialize(serdes.string.serialize(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_int64_round_trips_in_big_endian_twos_complement(value: int) -> None:
    data = serdes.int64.serialize(value)
    assert data == value.to_bytes(8, "big", signed=True)
    assert serdes.int64.deserialize(data) == value


def test_int32_and_float64_are_laid_out_as_kafkas_serialisers_do() -> None:
    assert serdes.int32.serialize(-2) == b"\xff\xff\xff\xfe"
    assert serdes.float64.serialize(1.5) == b"\x3f\xf8" + bytes(6)


LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab")


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner)))
def test_json_round_trips(value: Any) -> None:
    assert serdes.json.deserialize(serdes.json.serialize(value)) == value


def test_json_builds_a_dataclass() -> None:
    @dataclass
    class Order:
        id: int
        item: str

    serde = serdes.json(Order)
    assert serde.deserialize(serde.serialize(Order(7, "tea"))) == Order(7, "tea")


def test_json_takes_a_dataclass_only() -> None:
    with pytest.raises(TypeError, match="takes a dataclass"):
        serdes.json(int)


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (serdes.string, 7),
        (serdes.string, b"bytes"),
        (serdes.bytes, "text"),
        (serdes.int64, 2**63),
        (serdes.int64, 1.5),
        (serdes.int32, 2**31),
        (serdes.float64, "1.5"),
        (serdes.none, 0),
        (serdes.json, object()),
    ],
)
def test_a_value_of_another_kind_is_refused(serde: Serde[Any], value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        serde.serialize(value)


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_an_integer_of_the_wrong_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="needs 8 bytes"):
        serdes.int64.deserialize(data)
