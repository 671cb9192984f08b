"""Test that JSON is read by the rules of Spark's from_json, in batches and one by one alike."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest

from streams.errors import ConfigError
from streams.spark.serdes.ddl import parse_type
from streams.spark.serdes.decoding import ColumnSerde, create_column_decoder, find_arrow_type
from streams.spark.serdes.encoding import encode_column
from streams.spark.serdes.json_values import create_json_batch_reader, create_json_reader
from streams.spark.serdes.malformed import decode_column
from streams.spark.source.options import SerdeName
from tests.sampling import draw_seed

SCHEMA = "a INT, b STRING, c ARRAY<DOUBLE>, d STRUCT<e: BOOLEAN, f: BIGINT>, g SMALLINT, h FLOAT"


def read(schema: str, *values: bytes | None) -> tuple[list[Any], dict[int, str]]:
    array, causes = decode_column(
        create_column_decoder(ColumnSerde(SerdeName.JSON, "value", schema)), values
    )
    array.validate(full=True)
    return array.to_pylist(), causes


def one(schema: str, value: bytes) -> Any:
    (found,), causes = read(schema, value)
    assert causes == {}
    return found


def cause(schema: str, value: bytes) -> str:
    (found,), causes = read(schema, value)
    assert found is None
    return causes[0]


def test_fields_that_are_missing_are_null_and_others_are_passed_over() -> None:
    assert one("a INT, b STRING", b'{"b":"x","z":[1,{"y":2}]}') == {"a": None, "b": "x"}
    assert one("a INT", b'{"a":null}') == {"a": None}
    assert one("a INT", b"{}") == {"a": None}


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("BIGINT", b"9223372036854775807", 2**63 - 1),
        ("DOUBLE", b"5", 5.0),
        ("DOUBLE", b'"-Infinity"', float("-inf")),
        ("STRING", b"5", "5"),
        ("STRING", b'{"a":[1,true]}', '{"a":[1,true]}'),
        ("STRING", b"-18446744073709551616", "-18446744073709551616"),
        ("STRING", b"18446744073709551615", "18446744073709551615"),
        ("STRING", b"1.8446744073709552e19", "1.8446744073709552e+19"),
        ("STRING", b"1e-7", "1e-7"),
        ("STRING", b'{"a":["\xc3\xbc",18446744073709551616]}', '{"a":["ü",18446744073709551616]}'),
        ("DATE", b'"2026-01-31"', date(2026, 1, 31)),
        (
            "TIMESTAMP",
            b'"2026-01-31T12:00:00.5+01:00"',
            datetime(2026, 1, 31, 11, 0, 0, 500_000, UTC),
        ),
        ("TIMESTAMP", b'"2026-01-31 12:00:00"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("TIMESTAMP", b"60", datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
        ("TIMESTAMP_NTZ", b'"2026-01-31T12:00:00"', datetime.fromisoformat("2026-01-31T12:00")),
        ("DECIMAL(20,2)", b"123456789012345678.125", Decimal("123456789012345678.13")),
        ("DECIMAL(4,1)", b'"12.34"', Decimal("12.3")),
        ("BINARY", b'"AP8="', b"\x00\xff"),
        ("MAP<STRING,INT>", b'{"x":1}', [("x", 1)]),
        ("ARRAY<ARRAY<INT>>", b"[[1],null,[]]", [[1], None, []]),
    ],
)
def test_values_as_spark_reads_them(kind: str, value: bytes, found: Any) -> None:
    assert one(f"a {kind}", b'{"a":' + value + b"}") == {"a": found}
    assert one(kind, value) == found


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("INT", b"2147483648", "2147483648 is out of range (int)"),
        ("TINYINT", b"-129", "out of range (tinyint)"),
        ("BIGINT", b"5.0", "needs a whole number (bigint), got 5.0"),
        ("BIGINT", b"true", "needs a whole number"),
        ("BIGINT", b'"5"', "needs a whole number"),
        ("DOUBLE", b"true", "needs a number, got true"),
        ("DOUBLE", b'"1.5"', "needs a number"),
        ("BOOLEAN", b"1", "needs true or false, got 1"),
        ("DECIMAL(4,2)", b"[18446744073709551616]", "got [18446744073709551616]"),
        ("ARRAY<STRING>", b'"x"', 'needs a list, got "x"'),
        ("STRUCT<x: INT>", b"[1]", "needs an object"),
        ("DATE", b"5", "needs a date"),
        ("DECIMAL(4,2)", b"123", "123 does not fit into decimal(4,2)"),
        ("DECIMAL(4,2)", b'"\\ud800"', r"\ud800 does not fit into decimal(4,2)"),
        ("TIMESTAMP_NTZ", b'"2026-01-31T12:00:00Z"', "needs a time without a zone"),
        ("BINARY", b'"?"', "Error"),
    ],
)
def test_a_value_of_another_kind_makes_the_whole_unreadable(
    kind: str, value: bytes, says: str
) -> None:
    text = cause(f"a {kind}", b'{"a":' + value + b"}")
    assert says in text
    assert "a: " in text


@pytest.mark.parametrize(
    "value", [b"", b" ", b"{", b"[]", b"5", b'{"a":1}{"a":2}', b'{"a":1}\n{"a":2}', b'{"a":"\xff"}']
)
def test_what_is_no_object_is_not_read_and_moves_no_other_row(value: bytes) -> None:
    found, causes = read("a STRING", b'{"a":"x"}', value, None, b'{"a":"y"}')
    assert found == [{"a": "x"}, None, None, {"a": "y"}]
    assert causes.keys() == {1}


@pytest.mark.parametrize("number", [b"NaN", b" -Infinity", b"[Inf]", b"1e400", b"01", b"1."])
def test_numbers_that_json_does_not_have_are_unreadable_alone_and_in_company(number: bytes) -> None:
    value = b'{"a":' + number + b"}"
    for schema in ("a DOUBLE", "a ARRAY<DOUBLE>", "b INT"):
        assert "JSON" in cause(schema, value)
        found, causes = read(schema, value, b"{")
        assert found == [None, None]
        assert causes.keys() == {0, 1}


def test_two_objects_in_one_value_do_not_stand_in_for_one_that_is_empty() -> None:
    found, causes = read("a INT", b'{"a":1}{"a":2}', b"", b'{"a":3}')
    assert found == [None, None, {"a": 3}]
    assert causes.keys() == {0, 1}


def test_white_space_around_and_within_an_object_is_nothing() -> None:
    assert one("a INT", b' {\n "a" :\r\n 1 }\n') == {"a": 1}
    assert one("a INT", b'{\n "a" :\r\n 1 }') == {"a": 1}


def test_the_last_of_fields_of_one_name_counts() -> None:
    assert one("a INT", b'{"a":1,"a":2}') == {"a": 2}


def _any(of: random.Random, depth: int = 0) -> Any:
    kinds = ["int", "big", "float", "text", "bool", "null"] + (
        ["list", "dict"] if depth < 3 else []
    )
    match of.choice(kinds):
        case "int":
            return of.randrange(-100, 100)
        case "big":
            return of.choice([2**15, 2**31, -(2**31), 2**62, 2**63 - 1])
        case "float":
            return of.choice([1.0, 0.1, -2.5, 1e300])
        case "text":
            return of.choice(["", "x", "ü\n", "}", '{"a":1}', "\u2028"])
        case "bool":
            return of.random() < 0.5
        case "list":
            return [_any(of, depth + 1) for _ in range(of.randrange(3))]
        case "dict":
            return {of.choice("abcdefgh"): _any(of, depth + 1) for _ in range(of.randrange(4))}
    return None


def _fitting(of: random.Random) -> dict[str, Any]:
    """Draw an object whose fields nearly always have the kinds of the schema."""
    fields = {
        "a": of.randrange(-(2**31), 2**31),
        "b": of.choice(["", "x", "ü}", "line\nfeed"]),
        "c": [of.random(), 1, None][: of.randrange(4)],
        "d": {"e": of.random() < 0.5, "f": of.randrange(2**63), "x": _any(of)},
        "g": of.randrange(-(2**15), 2**15),
        "h": of.randrange(1000) / 4,
        "more": _any(of),
    }
    for name in of.sample(sorted(fields), of.randrange(3)):
        fields[name] = None
    if of.random() < 0.02:
        fields[of.choice("abcdgh")] = _any(of)
    return dict(of.sample(sorted(fields.items()), of.randrange(len(fields) + 1)))


def test_a_batch_read_at_once_is_what_its_values_are_one_by_one() -> None:
    seed = draw_seed("batches of values")
    of = random.Random(seed)
    kind = parse_type(SCHEMA)
    arrow = find_arrow_type(kind)
    each_by_itself, many = create_json_reader(kind), create_json_batch_reader(kind, arrow)
    assert many is not None
    at_once = 0
    for _ in range(300):
        values = [
            None if of.random() < 0.1 else json.dumps(_fitting(of)).encode()
            for _ in range(of.randrange(1, 12))
        ]
        try:
            found = many(values)
        except ValueError:
            continue
        at_once += 1
        found.validate(full=True)
        read = [None if each is None else each_by_itself(each) for each in values]
        assert found.to_pylist() == pa.array(read, arrow).to_pylist(), f"{seed=} {values=}"
    assert at_once > 100, f"{seed=}"


def test_anything_is_read_or_refused_the_same_alone_and_in_company() -> None:
    seed = draw_seed("anything as JSON")
    of = random.Random(seed)
    kind = parse_type(SCHEMA)
    each_by_itself, many = (
        create_json_reader(kind),
        create_json_batch_reader(kind, find_arrow_type(kind)),
    )
    assert many is not None
    for _ in range(2000):
        value = json.dumps(_any(of)).encode()
        try:
            (found,) = many([value]).to_pylist()
        except ValueError:
            continue
        wanted = pa.array([each_by_itself(value)], find_arrow_type(kind)).to_pylist()[0]
        assert found == wanted, f"{seed=} {value!r}"


def test_maps_need_text_as_keys() -> None:
    with pytest.raises(ConfigError, match=r"value_schema: keys of JSON are text.*map<int,int>"):
        create_column_decoder(ColumnSerde(SerdeName.JSON, "value", "MAP<INT,INT>"))


def test_json_is_written_with_all_fields_and_read_back_the_same() -> None:
    schema = "a INT, b STRING, c DECIMAL(20,2), d BINARY, e MAP<STRING,INT>, f DATE, g TIMESTAMP"
    column = ColumnSerde(SerdeName.JSON, "value", schema)
    values = [
        {
            "a": 1,
            "b": "ü",
            "c": Decimal("123456789012345678.12"),
            "d": b"\xff",
            "e": [("x", 1)],
            "f": date(2026, 1, 31),
            "g": datetime(2026, 1, 31, tzinfo=UTC),
        },
        {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None},
        None,
    ]
    array = pa.array(values, create_column_decoder(column).arrow_type)
    written = encode_column(array, column)
    assert written[1] == orjson.dumps(dict.fromkeys("abcdefg"))
    assert written[2] is None
    assert b'"c":123456789012345678.12,"d":"/w==","e":{"x":1}' in (written[0] or b"")
    assert decode_column(create_column_decoder(column), written) == (array, {})
