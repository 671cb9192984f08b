"""Test what messages show of the keys and values of records."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.shown_values import (
    ShownValues,
    describe_value,
    hide_values,
    limit_shown_values,
    quote_value,
)
from streams.errors import UnknownTopic


@dataclass
class Card:
    number: str
    cents: int


@pytest.mark.parametrize(
    ("value", "described"),
    [
        ("4711", "str of 4 characters"),
        (b"4711", "bytes of 4 bytes"),
        ({"a": 1}, "dict of 1"),
        ([1, 2], "list of 2"),
        (4711, "int"),
        (None, "NoneType"),
        (True, "bool"),
        (Card("4711", 5), "Card"),
    ],
)
def test_types_and_sizes_are_shown(value: object, described: str) -> None:
    with limit_shown_values(ShownValues.TYPES):
        assert (describe_value(value), quote_value(value)) == (described, f"<{described}>")
    with limit_shown_values(ShownValues.NONE):
        assert describe_value(value) == "a value"
    assert repr(value) in describe_value(value), "without a limit all is shown"
    assert quote_value(value) == repr(value)


def fail(value: object) -> ValueError:
    return ValueError(f"can't take {value!r}")


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        ("4711-22", fail("4711-22"), "can't take <str of 7 characters>"),
        (b"4711-22", fail("4711-22"), "can't take <str of 7 characters>"),
        ("ab", fail("ab"), "can't take <str of 2 characters>"),
        ({"card": {"number": "4711-22"}}, fail("4711-22"), "can't take <str of 7 characters>"),
        (json.dumps({"n": 471122}).encode(), ValueError("no 471122"), "no <int>"),
        (Card("4711-22", 5), fail("4711-22"), "can't take <str of 7 characters>"),
        (Decimal("12.50"), ValueError("12.50 is odd"), "<Decimal> is odd"),
        ("cents", KeyError("4711"), "'4711'"),
        ("c3", ValueError("no customer c3"), "no customer <str of 2 characters>"),
        ("c3", ValueError("topic abc3 and c34"), "topic abc3 and c34"),
        (-5, ValueError("a price of -5"), "a price of <int>"),
        ({"n": 7}, KeyError(7), "<int>"),
        ("a", ValueError("neither 'a' nor b"), "neither <str of 1 characters> nor b"),
        (["int", "c3"], ValueError("c3"), "<str of 2 characters>"),
        ("", ValueError("nothing"), "nothing"),
        (471, ValueError("at offset 94711"), "at offset 94711"),
    ],
)
def test_a_records_values_are_taken_out_of_what_an_exception_says(
    value: Any, error: Exception, shown: str
) -> None:
    assert hide_values(str(error), error, value) == str(error)
    with limit_shown_values(ShownValues.TYPES):
        assert hide_values(str(error), error, value) == shown


def test_the_line_of_code_and_the_type_are_no_values_though_they_read_alike() -> None:
    error = ValueError("no price for 3")
    text = f"{error!r} in price, shop.py:3: `raise ValueError(3)`"
    with limit_shown_values(ShownValues.TYPES):
        assert hide_values(text, error, 3, "ValueError", "price") == (
            "ValueError('no <str of 5 characters> for <int>') in price, shop.py:3: "
            "`raise ValueError(3)`"
        )


def test_with_none_an_exception_says_only_its_type() -> None:
    error = fail("4711")
    with limit_shown_values(ShownValues.NONE):
        assert hide_values(f"{error!r} in f, app.py:3", error) == "ValueError in f, app.py:3"
        assert hide_values("", ValueError()) == ""


def test_an_exception_that_names_a_topic_is_shown_though_the_name_is_made_of_a_value() -> None:
    error = UnknownTopic("topic 'events-paris' does not exist")
    for shown in (ShownValues.TYPES, ShownValues.NONE):
        with limit_shown_values(shown):
            assert hide_values(str(error), error, {"city": "paris"}) == str(error)


NESTED = st.recursive(
    st.uuids().map(str) | st.uuids().map(lambda each: each.bytes.hex().encode()) | st.uuids(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("xyz"), inner),
)


@given(NESTED)
def test_no_part_of_a_value_is_left_where_an_exception_quotes_all_of_it(value: Any) -> None:
    error = ValueError(f"got {value!r}")
    with limit_shown_values(ShownValues.TYPES):
        text = hide_values(str(error), error, value)
    assert not re.search("[0-9a-f]{8}", text), text
