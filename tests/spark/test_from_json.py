"""Test that JSON is read beside Spark's from_json as docs/spark.md says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from streams.spark.serdes.decoding import ColumnSerde, create_column_decoder
from streams.spark.serdes.malformed import decode_column
from streams.spark.source.options import SerdeName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREADABLE = "unreadable"
TYPES = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "string", "binary", "date",
    "timestamp", "timestamp_ntz", "decimal(10,2)", "decimal(38,0)", "array<int>",
    "map<string,int>", "struct<x:int,y:string>",
)  # fmt: skip
VALUES = (
    "null", "true", "1", "-1", "2147483648", "9223372036854775808",
    "12345678901234567890123456789012345", "1.5", "1.0", "1e3", "1.50", "0.005", "-0.0",
    "1.2345678901234567890", '"x"', '""', '"NaN"', '"Infinity"', '"-INF"', '"1.5"', '"true"',
    '"AQI="', '"AQI"', '"!!"', '"2020-01-02"', '"2020-13-02"', '"0001-01-01"', '"1582-10-10"',
    "[]", "[1]", '[1,"x"]', "[null]", "{}", '{"x":1}', '{"x":1,"y":"z"}', '{"x":"bad","y":"z"}',
    '{"y":5}', '{"b": 1.50, "a":[1 , 2]}', '{"k":null}', '{"x":12345678901234567890123}',
)  # fmt: skip
TIMES = (
    '"2020-01-02T03:04:05"', '"2020-01-02T03:04:05Z"', '"2020-01-02T03:04:05+02:00"',
    '"2020-01-02 03:04:05"', '"2020-01-02 03:04:05.123456789"', '"2020-01-02T03:04"',
)  # fmt: skip
DOCUMENTED_DIFFERENCES = (
    ("string", "1e7", "1.0E7", "10000000.0"),
    ("double", "NaN", "NaN", UNREADABLE),
    ("double", "1e400", "Infinity", UNREADABLE),
    ("tinyint", "128", "-128", UNREADABLE),
    ("int", "1} x", "1", UNREADABLE),
    ("date", '"2020-1-2"', "2020-01-02", UNREADABLE),
    ("date", '"2020"', "2020-01-01", UNREADABLE),
    ("date", '"2020-01-02T03:04:05Z"', "2020-01-02", UNREADABLE),
    ("timestamp", '"2020-01"', "2020-01-01 00:00:00", UNREADABLE),
    ("timestamp", "253402300800", "+10000-01-01 00:00:00", UNREADABLE),
    ("timestamp", '"20200102"', UNREADABLE, "2020-01-02 00:00:00"),
    ("timestamp_ntz", '"2020-W01-1"', UNREADABLE, "2019-12-30 00:00:00"),
)


def read_both(spark: SparkSession, kind: str, values: list[str]) -> list[tuple[str, str]]:
    """Read `{"a":VALUE}` by from_json and by the serde, each to `a` as text or UNREADABLE.

    A row of which from_json reads only a part counts as unreadable.
    """
    texts = [f'{{"z":7,"a":{value}}}' for value in values]
    decoder = create_column_decoder(ColumnSerde(SerdeName.JSON, "value", f"a {kind}, z int"))
    array, causes = decode_column(decoder, [text.encode() for text in texts])
    schema: Any = decoder.spark_type
    with_cause = StructType([*schema, StructField("_corrupt_record", StringType())])
    rows = pa.table({"text": texts, "ours": array, "at": range(len(texts))})
    found = (
        spark.createDataFrame(rows)
        .withColumn("spark", F.from_json("text", with_cause))
        .select(
            F.col("spark._corrupt_record").isNotNull().alias("is_corrupt"),
            *(F.to_json(F.struct(f"{side}.a")).alias(side) for side in ("spark", "ours")),
            *(_as_text(f"{side}.a", kind).alias(f"{side}_text") for side in ("spark", "ours")),
        )
        .collect()
    )
    return [
        (
            UNREADABLE if each.is_corrupt else str(each.spark_text),
            UNREADABLE if at in causes else str(each.ours_text),
        )
        for at, each in enumerate(found)
    ]


def _as_text(column: str, kind: str) -> Any:
    if kind.startswith(("array", "map", "struct")):
        return F.to_json(column)
    return F.hex(column) if kind == "binary" else F.col(column).cast("string")


@pytest.mark.parametrize("kind", TYPES)
def test_values_are_what_from_json_makes_of_them(spark: SparkSession, kind: str) -> None:
    values = [*VALUES, *(TIMES if kind not in ("date",) else ())]
    for value, (by_spark, ours) in zip(values, read_both(spark, kind, values), strict=True):
        assert ours == by_spark, value


def test_differences_from_from_json_are_those_of_the_documentation(spark: SparkSession) -> None:
    for kind, value, by_spark, ours in DOCUMENTED_DIFFERENCES:
        assert read_both(spark, kind, [value]) == [(by_spark, ours)], (kind, value)
