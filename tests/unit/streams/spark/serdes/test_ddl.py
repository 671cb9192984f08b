"""Test that Spark's types are parsed from text without a JVM."""

from __future__ import annotations

import pytest

from streams.errors import ConfigError
from streams.spark.serdes.ddl import parse_type


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("INT", "int"),
        (" bigint ", "bigint"),
        ("a INT", "struct<a:int>"),
        ("a: int, b String", "struct<a:int,b:string>"),
        ("map<string , long >", "map<string,bigint>"),
        (
            "a array<struct<b:date,c: decimal( 10 ,2 )>>",
            "struct<a:array<struct<b:date,c:decimal(10,2)>>>",
        ),
        ("`a b` INT NOT NULL COMMENT 'x, y', c TIMESTAMP_NTZ", "struct<a b:int,c:timestamp_ntz>"),
        ("decimal", "decimal(10,0)"),
        ("struct<`odd``name`: real>", "struct<odd`name:float>"),
    ],
)
def test_a_type_or_the_fields_of_one(text: str, simple: str) -> None:
    assert parse_type(text).simpleString() == simple


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("blabla", "'blabla' is none of boolean"),
        ("a: int,", "it ends too early"),
        ("array<int", "it ends too early"),
        ("map<int, boolean>>", "'>' is too much"),
        ("a INT, a INT", "'a' is there twice"),
        ("decimal(50,2)", "decimal(50,2) can't be"),
        ("a INT b INT", "',' was to come, not 'b'"),
        ("decimal(x)", "a number was to come"),
        ("", "it ends too early"),
    ],
)
def test_what_is_no_type_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_type(text)
    assert says in str(caught.value)
    assert repr(text) in str(caught.value)
