"""Test that plain serdes use Kafka's own layout, restore what they wrote, and refuse bad input."""

from __future__ import annotations

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
    with pytest.raises((TypeError, ValueError), match=type(value).__name__):
        serde.serialize(value)


def test_none_is_for_what_is_null() -> None:
    for use in (serdes.none.serialize, serdes.none.deserialize):
        with pytest.raises((TypeError, ValueError), match="takes None only, got bytes: b'x'"):
            use(b"x")  # type: ignore[arg-type]


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        serdes.string.deserialize(b"\xff")


def test_a_refusal_shows_the_value() -> None:
    refusing: list[Serde[Any]] = [serdes.bytes, serdes.int64, serdes.none]
    for serde in refusing:
        with pytest.raises((TypeError, ValueError), match="got str: 'seven'"):
            serde.serialize("seven")


@pytest.mark.parametrize(
    ("serde", "value"), [(serdes.int32, 2**31), (serdes.int64, 2**63), (serdes.int64, 1.5)]
)
def test_a_number_out_of_range_is_refused_with_the_range(serde: Serde[Any], value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{serde.name} takes int from -2\*\*\d+ .*{value}"):
        serde.serialize(value)


def test_pickle_round_trips_and_says_which_protocol_it_has() -> None:
    value = {"a": [1, (2, 3)], "b": {4}}
    data = serdes.pickle.serialize(value)
    assert data[:2] == b"\x80\x05"
    assert serdes.pickle.deserialize(data) == value


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_an_integer_of_the_wrong_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="needs 8 bytes"):
        serdes.int64.deserialize(data)
