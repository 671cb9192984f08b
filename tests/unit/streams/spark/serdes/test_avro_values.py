"""Test that Spark reads a registry's Avro from applications, and that they read Spark's."""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructType

from streams import serdes
from streams.errors import ConfigError, UserError
from streams.spark.serdes.avro_values import avro_to_spark_type, fetch_latest_schema
from streams.spark.serdes.columns import BatchDecoder, pin_registry_schemas
from streams.spark.serdes.ddl import parse_type
from streams.spark.serdes.decoding import ColumnSerde, create_column_decoder
from streams.spark.serdes.encoding import encode_column
from streams.spark.serdes.malformed import decode_column
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import ParseMode, SerdeName, SerdeOptions
from streams.spark.source.registry_access import RegistryAccess
from tests import brokers
from tests.unit.properties import examples
from tests.unit.streams.serdes import avro_cases as cases

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("fastavro") is None and not brokers.in_ci(),
    reason="pip install 'millrace-streams[registry]'",
)

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"], "default": None},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "parts", "type": {"type": "map", "values": "double"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "hour", "type": {"type": "int", "logicalType": "time-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "raw", "type": "bytes"},
    ],
}
ORDER = {
    "id": 2**40,
    "item": "tea",
    "size": "L",
    "tags": ["a", "b"],
    "parts": {"x": 0.5},
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 12, 0, 0, 5000, UTC),
    "hour": time(1, 2, 3, 4000),
    "price": Decimal("12.50"),
    "raw": b"\x00\xff",
}
FOUND = ORDER | {"parts": [("x", 0.5)], "hour": 3_723_004}
TOPIC = "orders"


@pytest.fixture
def registry(unique: Callable[[str], str]) -> RegistryAccess:
    return RegistryAccess(f"mock://{unique('spark')}")


def serde_of(registry: RegistryAccess, schema: object = SCHEMA) -> Any:
    given = serdes.avro(registry=registry.url, schema=json.dumps(schema))
    return given.for_topic(TOPIC, "value")


def column(registry: RegistryAccess, schema: object = SCHEMA) -> ColumnSerde:
    return ColumnSerde(SerdeName.AVRO, "value", json.dumps(schema), registry, TOPIC)


def test_types_are_those_of_sparks_own_source() -> None:
    assert avro_to_spark_type(json.dumps(SCHEMA)) == parse_type(
        "STRUCT<id: BIGINT, item: STRING, size: STRING, tags: ARRAY<STRING>, "
        "parts: MAP<STRING, DOUBLE>, day: DATE, at: TIMESTAMP, hour: INT, "
        "price: DECIMAL(9, 2), raw: BINARY>"
    )
    assert avro_to_spark_type('["int", "long"]') == LongType()
    assert avro_to_spark_type(
        '{"type": "long", "logicalType": "local-timestamp-micros"}'
    ) == parse_type("TIMESTAMP_NTZ")
    money = {"type": "fixed", "name": "M", "size": 4, "logicalType": "decimal", "precision": 9}
    fields = [{"name": "net", "type": money}, {"name": "gross", "type": "M"}]
    assert avro_to_spark_type(
        json.dumps({"type": "record", "name": "Bill", "fields": fields})
    ) == parse_type("net DECIMAL(9, 0), gross DECIMAL(9, 0)")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ('["int", "string"]', "a union of 2 types"),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}', "itself"),
        ('"nope"', "nope is not known"),
        ('{"type": "array"}', "items"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 39}', "Spark has 38"),
        ("{", "no Avro schema"),
    ],
)
def test_a_schema_without_a_type_is_refused(schema: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        avro_to_spark_type(schema)


def test_what_an_application_wrote_is_read(registry: RegistryAccess) -> None:
    values = [serde_of(registry).serialize(ORDER), None]
    array, causes = decode_column(create_column_decoder(column(registry)), values)
    array.validate(full=True)
    assert (array.to_pylist(), causes) == ([FOUND, None], {})


def test_what_was_written_with_an_older_schema_has_the_columns_of_the_newer(
    registry: RegistryAccess,
) -> None:
    older = SCHEMA | {"fields": [each for each in SCHEMA["fields"] if each["name"] != "item"]}
    written = serde_of(registry, older).serialize({k: v for k, v in ORDER.items() if k != "item"})
    array, causes = decode_column(create_column_decoder(column(registry)), [written])
    assert (array.to_pylist(), causes) == ([FOUND | {"item": None}], {})


def test_what_spark_writes_an_application_reads(registry: RegistryAccess) -> None:
    plain = {n: v for n, v in ORDER.items() if n != "hour"}
    schema = SCHEMA | {"fields": [each for each in SCHEMA["fields"] if each["name"] != "hour"]}
    arrow = create_column_decoder(column(registry, schema)).arrow_type
    array = pa.array([plain | {"parts": [("x", 0.5)]}, None], arrow)
    written = encode_column(array, column(registry, schema))
    assert written[1] is None
    assert serde_of(registry, schema).deserialize(written[0]) == plain


def test_what_is_no_avro_is_told_and_the_rest_is_read(registry: RegistryAccess) -> None:
    good = serde_of(registry).serialize(ORDER)
    array, causes = decode_column(
        create_column_decoder(column(registry)), [good, b"{}", good[:9], good]
    )
    assert array.to_pylist() == [FOUND, None, None, FOUND]
    assert causes.keys() == {1, 2}


def test_a_value_that_does_not_fit_its_schema_is_refused(registry: RegistryAccess) -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]}
    with pytest.raises(UserError, match="column value can't be written as avro"):
        encode_column(pa.array([{"n": "text"}]), column(registry, schema))


def test_the_latest_schema_is_the_registrys_when_the_read_is_planned(
    registry: RegistryAccess,
) -> None:
    small: dict[str, Any] = SCHEMA | {"fields": SCHEMA["fields"][:1]}
    serde_of(registry, small).serialize({"id": 1})
    asked = SerdeOptions(value=SerdeName.AVRO, schema_registry=registry, mode=ParseMode.FAILFAST)
    first = pin_registry_schemas(asked, TOPIC)
    assert json.loads(first.value_schema or "")["fields"] == small["fields"]
    newer = small | {"fields": SCHEMA["fields"][:2]}
    written = serde_of(registry, newer).serialize({"id": 2, "item": "tea"})
    # The one that was planned stays, and what is written with the newer one is read by it.
    columns = BatchDecoder(first, TOPIC)
    value_type = columns.schema["value"].dataType
    assert isinstance(value_type, StructType)
    assert value_type.names == ["id"]
    batch = columns.decode_batch(RawBatch(TOPIC, 0, [None], [written], [0], [0], None))
    assert batch.column("value").to_pylist() == [{"id": 2}]
    assert BatchDecoder(pin_registry_schemas(asked, TOPIC), TOPIC).decode_batch(
        RawBatch(TOPIC, 0, [None], [written], [0], [0], None)
    ).column("value").to_pylist() == [{"id": 2, "item": "tea"}]


def test_a_topic_of_which_the_registry_knows_nothing_is_told(registry: RegistryAccess) -> None:
    with pytest.raises(ConfigError, match=r"no schema of subject 'orders-key'.*key_schema"):
        fetch_latest_schema(registry, TOPIC, "key")


YEAR_294247_MS = 9_223_372_036_854_775


@pytest.mark.parametrize(("unit", "factor"), [("millis", 1), ("micros", 1_000)])
@pytest.mark.parametrize("zone", ["", "local-"])
def test_times_after_the_year_9999_are_sparks_timestamps(
    registry: RegistryAccess, zone: str, unit: str, factor: int
) -> None:
    schema = {"type": "long", "logicalType": f"{zone}timestamp-{unit}"}
    written = serde_of(registry, "long").serialize(YEAR_294247_MS * factor)
    array, causes = decode_column(create_column_decoder(column(registry, schema)), [written])
    assert causes == {}
    assert array.cast(pa.int64()).to_pylist() == [YEAR_294247_MS * 1_000]


def test_a_time_beyond_sparks_is_told(registry: RegistryAccess) -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    written = serde_of(registry, "long").serialize(YEAR_294247_MS + 1)
    array, causes = decode_column(create_column_decoder(column(registry, schema)), [written])
    assert array.to_pylist() == [None]
    assert "Spark has no TIMESTAMP for 9223372036854776 ms" in str(causes[0])


def test_numbers_of_any_branch_of_a_union_are_read(registry: RegistryAccess) -> None:
    schema = {
        "type": "record",
        "name": "N",
        "fields": [
            {"name": "n", "type": ["null", "int", "long"]},
            {"name": "x", "type": ["float", "double"]},
        ],
    }
    values = [
        {"n": 5, "x": 1.5},
        {"n": ("long", 5), "x": ("float", 1.5)},
        {"n": 2**40, "x": 0.1},
        {"n": None, "x": 0.5},
    ]
    written = [serde_of(registry, schema).serialize(each) for each in values]
    array, causes = decode_column(create_column_decoder(column(registry, schema)), written)
    assert causes == {}
    assert array.to_pylist() == [
        {"n": 5, "x": 1.5},
        {"n": 5, "x": 1.5},
        {"n": 2**40, "x": 0.1},
        {"n": None, "x": 0.5},
    ]


@pytest.mark.parametrize(
    ("schema", "value", "written_as"),
    [
        ({"type": "string", "logicalType": "uuid"}, str(UUID(int=7)), UUID(int=7)),
        ({"type": "int", "logicalType": "time-millis"}, 3_723_004, time(1, 2, 3, 4000)),
        ({"type": "long", "logicalType": "time-micros"}, 1, time(0, 0, 0, 1)),
        ({"type": "int", "logicalType": "date"}, 0, date(1970, 1, 1)),
        ({"type": "long", "logicalType": "timestamp-millis"}, 0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_texts_and_numbers_of_spark_are_written_as_logical_types(
    registry: RegistryAccess, schema: Any, value: Any, written_as: Any
) -> None:
    parts = {"type": "array", "items": {"type": "map", "values": ["null", schema]}}
    record = {"type": "record", "name": "R", "fields": [{"name": "p", "type": parts}]}
    kind = pa.string() if isinstance(value, str) else pa.int64()
    arrow = pa.struct([("p", pa.list_(pa.map_(pa.string(), kind)))])
    array = pa.array([{"p": [[("a", value), ("b", None)]]}], arrow)
    (written,) = encode_column(array, column(registry, record))
    assert written is not None
    assert serde_of(registry, record).deserialize(written) == {"p": [{"a": written_as, "b": None}]}


def test_a_number_beyond_python_is_written_as_it_is(registry: RegistryAccess) -> None:
    schema = {"type": "long", "logicalType": "timestamp-micros"}
    array = pa.array([YEAR_294247_MS * 1_000], pa.int64())
    (written,) = encode_column(array, column(registry, schema))
    assert written is not None
    assert serde_of(registry, "long").deserialize(written) == YEAR_294247_MS * 1_000


def test_what_spark_would_round_or_cut_is_refused(registry: RegistryAccess) -> None:
    for schema, array, message in (
        ("float", pa.array([0.1]), "float has 32 bits"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.array([1], pa.timestamp("us", "UTC")),
            "would be cut",
        ),
        ({"type": "string", "logicalType": "uuid"}, pa.array(["x"]), "badly formed"),
    ):
        with pytest.raises(UserError, match=f"column value can't be written as avro: .*{message}"):
            encode_column(array, column(registry, schema))


@examples(200)
@given(st.data())
def test_what_spark_reads_is_written_again_with_the_same_bytes(data: st.DataObject) -> None:
    access = RegistryAccess("mock://spark-round-trips")
    schema = data.draw(cases.schemas(depth=2).filter(has_spark_type))
    subject = f"t{zlib.crc32(json.dumps(schema).encode())}"
    serde = serdes.avro(registry=access.url, schema=json.dumps(schema)).for_topic(subject, "value")
    column = ColumnSerde(SerdeName.AVRO, "value", json.dumps(schema), access, subject)
    values = [strip_names(data.draw(cases.explicit_values(schema)))]
    assume(values != [None])
    written = [serde.serialize(each) for each in values]
    array, causes = decode_column(create_column_decoder(column), written)
    assert causes == {}
    assert encode_column(array, column) == written


def has_spark_type(schema: Any) -> bool:
    try:
        avro_to_spark_type(json.dumps(schema))
    except ConfigError:
        return False
    return '"fields": []' not in json.dumps(schema) and '["null"]' not in json.dumps(schema)


def strip_names(value: Any) -> Any:
    """Return a value without the names of branches, which unions that Spark reads don't need."""
    if isinstance(value, tuple):
        return strip_names(value[1])
    if isinstance(value, dict):
        return {name: strip_names(each) for name, each in value.items()}
    return [strip_names(each) for each in value] if isinstance(value, list) else value
