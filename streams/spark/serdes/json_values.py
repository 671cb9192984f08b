"""Convert JSON to Arrow arrays of a Spark type, as docs/spark.md says beside Spark's from_json.

A field that is missing or null is null, one that the type doesn't have is passed over, and a value
of another kind makes the whole value unreadable. A string takes anything: a value that is no text
stands in it as JSON, whole numbers with all of their digits. Floating-point numbers may be the
texts NaN, Infinity and -Infinity; binary is base64; dates and times are ISO 8601 (a TIMESTAMP
without a zone is UTC, a TIMESTAMP_NTZ has none), a TIMESTAMP also seconds since 1970.

Where the type has nothing but strings, numbers and booleans a whole batch is parsed by Arrow; it
reads less than Spark does, and batches that it refuses are read value by value.
Source: JacksonParser.makeConverter of Spark 4.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql import types

Converter = Callable[[Any], Any]
"""Converts a parsed JSON value, which is not null."""

_INTEGER_BITS = {types.ByteType: 8, types.ShortType: 16, types.IntegerType: 32, types.LongType: 64}
_FLOATS = (types.DoubleType, types.FloatType)
_PARSED_BY_ARROW = (*_INTEGER_BITS, *_FLOATS, types.StringType, types.BooleanType)
_SPECIAL_FLOATS = {
    "NaN": "nan",
    "INF": "inf",
    "+INF": "inf",
    "Infinity": "inf",
    "+Infinity": "inf",
    "-INF": "-inf",
    "-Infinity": "-inf",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_CONSTANT = re.compile(rb"[-+:\[,\s](?:NaN|Inf)")


def create_json_reader(spark_type: types.DataType) -> Callable[[bytes], Any]:
    """Create a function that parses one JSON value into an object that `pyarrow.array` accepts.

    The function raises ValueError for a value that can't be read; this one for a type that JSON
    can't have.
    """
    convert_exact = _create_json_converter(spark_type, _convert_exact_text)
    convert = _create_json_converter(spark_type, _convert_text)

    def read_exact(value: bytes) -> Any:
        # Numbers keep all of their digits, those with a point as Decimals.
        found = json.loads(value, parse_float=Decimal, parse_constant=_refuse_non_finite_constant)
        return None if found is None else convert_exact(found)

    def read_value(value: bytes) -> Any:
        try:
            found = orjson.loads(value)
            return None if found is None else convert(found)
        except _RoundedNumber:
            return read_exact(value)

    leaves = _iterate_leaf_types(spark_type)
    has_decimals = any(isinstance(each, types.DecimalType) for each in leaves)
    return read_exact if has_decimals else read_value


def create_json_batch_reader(
    spark_type: types.DataType, arrow_type: Any
) -> Callable[[Sequence[bytes | None]], Any] | None:
    """Create a function that parses a whole batch, or return None if Arrow and Spark would differ.

    The function raises ValueError if any value needs to be read by itself.
    """
    is_parsed_by_arrow = all(
        isinstance(each, _PARSED_BY_ARROW) for each in _iterate_leaf_types(spark_type)
    )
    if not isinstance(spark_type, types.StructType) or not is_parsed_by_arrow:
        return None
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(list(arrow_type)), unexpected_field_behavior="ignore"
    )

    def read_batch(values: Sequence[bytes | None]) -> Any:
        binary = pa.array(values, pa.binary())
        _check_are_objects(binary)
        found = [each for each in values if each is not None]
        if not found:
            return pa.nulls(len(values), arrow_type)
        data = b"\n".join(found)
        if (b"NaN" in data or b"Inf" in data) and _BARE_CONSTANT.search(data):
            raise ValueError("Arrow's parser takes NaN and Infinity for numbers")
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            options,
        )
        rows = table.to_struct_array().combine_chunks()
        if isinstance(rows, pa.ChunkedArray):
            rows = pa.concat_arrays(rows.chunks)
        if len(rows) != len(found):
            raise ValueError(f"{len(found)} values have {len(rows)} objects")
        rows.validate(full=True)  # The parser takes text that is no UTF-8.
        if binary.null_count:
            number = pc.subtract(pc.cumulative_sum(pc.cast(binary.is_valid(), pa.int64())), 1)
            rows = rows.take(pc.if_else(binary.is_valid(), number, None))
        return rows

    return read_batch


def _check_are_objects(values: Any) -> None:
    """Raise ValueError unless each value begins and ends as a JSON object does.

    With as many objects as there are values, each value is one of them: an object that is open at
    the end of a value can't go on with a line feed and a brace.
    """
    fine = pc.and_(pc.starts_with(values, pattern=b"{"), pc.ends_with(values, pattern=b"}"))
    if not pc.all(fine, skip_nulls=True, min_count=0).as_py():
        raise ValueError("not all values are objects")


def _iterate_leaf_types(spark_type: types.DataType) -> Iterator[types.DataType]:
    """Yield the types in which nothing is nested; maps and empty structs come as they are too."""
    match spark_type:
        case types.StructType() if len(spark_type):
            for each in spark_type:
                yield from _iterate_leaf_types(each.dataType)
        case types.ArrayType():
            yield from _iterate_leaf_types(spark_type.elementType)
        case types.MapType():
            yield spark_type
            yield from _iterate_leaf_types(spark_type.valueType)
        case _:
            yield spark_type


class _RoundedNumber(Exception):
    """Signals that a whole number of more than 64 bits was perhaps parsed as a float."""


def _refuse_non_finite_constant(text: str) -> Any:
    """Raise ValueError for NaN and infinities, which JSON does not have."""
    raise ValueError(f"{text} is no JSON")


def _create_json_converter(kind: types.DataType, to_text: Converter) -> Converter:
    """Create a function that checks a parsed JSON value and converts it to a Spark type.

    `to_text`: the converter of strings.
    """
    match kind:
        case types.StructType():
            fields = [(each.name, _create_json_converter(each.dataType, to_text)) for each in kind]
            return _create_type_check(
                dict, "an object", lambda value: _convert_fields(fields, value)
            )
        case types.ArrayType():
            of_element = _create_json_converter(kind.elementType, to_text)
            return _create_type_check(
                list,
                "a list",
                lambda value: [None if each is None else of_element(each) for each in value],
            )
        case types.MapType():
            if not isinstance(kind.keyType, types.StringType):
                raise ValueError(f"keys of JSON are text: a map can't be {kind.simpleString()}")
            of_value = _create_json_converter(kind.valueType, to_text)
            # Arrow takes maps as lists of pairs.
            return _create_type_check(
                dict,
                "an object",
                lambda value: [(n, None if v is None else of_value(v)) for n, v in value.items()],
            )
        case types.ByteType() | types.ShortType() | types.IntegerType() | types.LongType():
            return _create_integer_converter(_INTEGER_BITS[type(kind)], kind.simpleString())
        case types.DecimalType():
            return _create_decimal_converter(kind)
        case types.StringType():
            return to_text
    return _SCALAR_CONVERTERS[type(kind)]


def _create_type_check(json_type: type, description: str, convert: Converter) -> Converter:
    """Create a converter that raises ValueError for values of other types than `json_type`."""

    def convert_checked(value: Any) -> Any:
        if type(value) is not json_type:
            raise _create_wrong_kind_error(value, description)
        return convert(value)

    return convert_checked


def _convert_fields(fields: Sequence[tuple[str, Converter]], value: dict[str, Any]) -> Any:
    """Convert the fields of an object. Raises ValueError with the field's name."""
    found = {}
    for name, convert in fields:
        given = value.get(name)
        try:
            found[name] = None if given is None else convert(given)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def _create_integer_converter(bits: int, type_name: str) -> Converter:
    """Create a function that checks that a value is an integer of at most `bits` bits."""
    minimum, maximum = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def check_range(value: int) -> int:
        if not minimum <= value <= maximum:
            raise ValueError(f"{value} is out of range ({type_name})")
        return value

    return _create_type_check(int, f"a whole number ({type_name})", check_range)


def _create_decimal_converter(kind: types.DecimalType) -> Converter:
    """Create a converter of numbers, or texts of numbers, to Decimals of the given type."""
    unit = Decimal(1).scaleb(-kind.scale)

    def convert_decimal(value: Any) -> Any:
        if type(value) not in (int, Decimal, str):
            raise _create_wrong_kind_error(value, f"a number ({kind.simpleString()})")
        try:
            with localcontext(prec=kind.precision) as context:
                context.rounding = "ROUND_HALF_UP"
                found = Decimal(value).quantize(unit)
        except InvalidOperation:
            raise ValueError(f"{value} does not fit into {kind.simpleString()}") from None
        if not found.is_finite():
            raise _create_wrong_kind_error(value, "a number")
        return found

    return convert_decimal


def _convert_text(value: Any) -> Any:
    """Return a text unchanged, and any other value, as orjson parses it, as JSON.

    Raises _RoundedNumber for large floats: orjson makes them of whole numbers that are too large.
    """
    if type(value) is str:
        return value
    text = orjson.dumps(value).decode()
    if "e+" in text:
        raise _RoundedNumber
    return text


def _convert_exact_text(value: Any) -> Any:
    """Return a text unchanged, and any other value, with all digits of its integers, as JSON."""
    if type(value) is str:
        return value
    try:
        return orjson.dumps(value, default=_to_float_in_range).decode()
    except orjson.JSONEncodeError:  # It writes no whole number of more than 64 bits.
        return _dump_parsed_json(value, _to_float_in_range)


def _convert_float(value: Any) -> Any:
    """Convert a number, or one of the texts NaN and Infinity, to a float."""
    if type(value) is str and value in _SPECIAL_FLOATS:
        return float(_SPECIAL_FLOATS[value])
    if type(value) not in (int, float, Decimal):
        raise _create_wrong_kind_error(value, "a number")
    return _to_float_in_range(value)


def _to_float_in_range(value: Any) -> float:
    """Convert a number to a float. Raises ValueError for one that is out of range."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise ValueError(f"{str(value)[:40]}... is out of range (double)")
    return found


def _convert_timestamp(value: Any) -> Any:
    """Convert seconds since 1970, or a text in ISO 8601, to a datetime with a zone."""
    if type(value) is int:
        try:
            return _EPOCH + timedelta(seconds=value)
        except OverflowError:
            raise ValueError(f"{value} seconds are out of range (timestamp)") from None
    found = _parse_time(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _convert_local_time(value: Any) -> Any:
    """Convert a text in ISO 8601 to a datetime without a zone. Raises ValueError if it has one."""
    found = _parse_time(value)
    if found.tzinfo is not None:
        raise _create_wrong_kind_error(value, "a time without a zone (timestamp_ntz)")
    return found


_parse_time = _create_type_check(str, "a time", datetime.fromisoformat)

_SCALAR_CONVERTERS: dict[type[types.DataType], Converter] = {
    types.BooleanType: _create_type_check(bool, "true or false", bool),
    **dict.fromkeys(_FLOATS, _convert_float),
    types.BinaryType: _create_type_check(str, "base64", partial(base64.b64decode, validate=True)),
    types.DateType: _create_type_check(str, "a date", date.fromisoformat),
    types.TimestampType: _convert_timestamp,
    types.TimestampNTZType: _convert_local_time,
}


def _create_wrong_kind_error(value: Any, wanted: str) -> ValueError:
    """Create the ValueError that says what kind of value a type needs."""
    return ValueError(f"needs {wanted}, got {_dump_parsed_json(value, str):.60}")


def _dump_parsed_json(value: Any, to_known_type: Callable[[Any], Any]) -> str:
    """Return any parsed JSON as text, whole numbers of more than 64 bits too."""
    return json.dumps(value, default=to_known_type, ensure_ascii=False, separators=(",", ":"))
