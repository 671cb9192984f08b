"""Test that typed headers keep their order, duplicates, empty values and null values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.commands.output import to_text_or_hex
from streams.commands.typed_headers import parse_header_options
from streams.errors import ConfigError


def test_a_header_is_kept_as_often_as_it_is_given_in_the_order_given() -> None:
    pairs = ["x=1", "y=", "x=2", "=e", "z=a=b", "x=1"]
    assert parse_header_options(pairs, None) == [
        ("x", b"1"), ("y", b""), ("x", b"2"), ("", b"e"), ("z", b"a=b"), ("x", b"1"),
    ]  # fmt: skip
    assert parse_header_options(None, None) == []


def test_what_cannot_be_typed_as_a_pair_is_given_in_a_list() -> None:
    listed = '[["x", "1"], ["x", null], ["", ""], ["a=b", "0xff00"], ["ключ", "0x"]]'
    assert parse_header_options(None, listed) == [
        ("x", b"1"), ("x", None), ("", b""), ("a=b", b"\xff\x00"), ("ключ", b""),
    ]  # fmt: skip
    assert parse_header_options([], "[]") == []


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
values = st.none() | st.binary() | st.sampled_from([b"0x41", b"0x", b"0X41"])


@given(st.lists(st.tuples(names, values)))
def test_headers_as_they_are_printed_as_json_are_written_again(
    headers: list[tuple[str, bytes | None]],
) -> None:
    printed = [(name, None if each is None else to_text_or_hex(each)) for name, each in headers]
    assert parse_header_options(None, json.dumps(printed)) == headers


@pytest.mark.parametrize(
    ("pairs", "listed", "message"),
    [
        (["trace"], None, "--header 'trace' is not NAME=VALUE; a header without a value is"),
        (["trace"], None, """--headers '[["trace", null]]'"""),
        (["x=\udcff"], None, r"--header 'x=\udcff' is no UTF-8: give bytes as hexadecimal"),
        (["\udcff=x"], None, r"a header's name can't be written as UTF-8"),
        (["x=1"], "[]", "give headers with --header, or as a list with --headers"),
        (None, "[", "--headers '[' is no list of headers: give it as '[["),
        (None, '{"a": "b"}', "is no list of headers: give it as '[["),
        (None, '["a"]', """--headers "a" is no list of headers"""),
        (None, '[["a"]]', """--headers ["a"] is no list of headers"""),
        (None, '[["a", 1]]', """--headers ["a", 1] is no list of headers"""),
        (None, '[["a", "0xf"]]', """--headers ["a", "0xf"]: non-hexadecimal number"""),
        (None, r'[["a\u0000b", "1"]]', "a header's name can't hold a NUL"),
        (None, r'[["a", "\udcff"]]', "can't encode character"),
    ],
)
def test_what_is_no_header_is_refused_with_what_to_give(
    pairs: list[str] | None, listed: str | None, message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_header_options(pairs, listed)
    assert message in str(raised.value)
