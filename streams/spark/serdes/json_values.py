"""Convert JSON to Arrow arrays of a Spark type, by the rules of Spark's from_json.

A field that is missing or null is null, one that the type doesn't have is passed over, and a value
of another kind makes the whole value unreadable. A string takes anything: a value that is no text
stands in it as JSON. Floating-point numbers may be the texts NaN, Infinity and -Infinity; binary is
base64; dates and times are ISO 8601 (without a zone: UTC), times also seconds since 1970.

Where the type has nothing but strings, numbers and booleans a whole batch is parsed by Arrow; it
reads less than Spark does, and batches that it refuses are read value by value.
Source: JacksonParser.makeConverter of Spark 4.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

Convert = Callable[[Any], Any]

_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_PARSED_BY_ARROW = (*_BITS, StringType, BooleanType, DoubleType, FloatType)
_NOT_NUMBERS = {
    "NaN": "nan",
    "INF": "inf",
    "+INF": "inf",
    "Infinity": "inf",
    "+Infinity": "inf",
    "-INF": "-inf",
    "-Infinity": "-inf",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def json_reader(kind: DataType) -> Callable[[bytes], Any]:
    """Return a function that reads one value into a value that `pyarrow.array` takes.

    The function raises ValueError for a value that can't be read; this one for a type that JSON
    can't have.
    """
    convert = _converter(kind)
    loads: Callable[[bytes], Any] = _exactly if _has(kind, DecimalType) else orjson.loads

    def read_value(value: bytes) -> Any:
        return convert(loads(value))

    return read_value


def many_reader(kind: DataType, arrow: Any) -> Callable[[Sequence[bytes | None]], Any] | None:
    """Return a function that reads a batch at once, or None if Arrow reads the type unlike Spark.

    The function raises ValueError if any value needs to be read by itself.
    """
    if not isinstance(kind, StructType) or not _is_parsed_by_arrow(kind):
        return None
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(list(arrow)), unexpected_field_behavior="ignore"
    )

    def read_batch(values: Sequence[bytes | None]) -> Any:
        binary = pa.array(values, pa.binary())
        _check_are_objects(binary)
        found = [each for each in values if each is not None]
        if not found:
            return pa.nulls(len(values), arrow)
        data = b"\n".join(found)
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


def _is_parsed_by_arrow(kind: DataType) -> bool:
    """Return whether a type has nothing but what Arrow's parser reads as Spark does."""
    match kind:
        case StructType():
            return len(kind) > 0 and all(_is_parsed_by_arrow(each.dataType) for each in kind)
        case ArrayType():
            return _is_parsed_by_arrow(kind.elementType)
    return isinstance(kind, _PARSED_BY_ARROW)


def _has(kind: DataType, wanted: type[DataType]) -> bool:
    """Return whether a type is, or has in it, a type of class `wanted`."""
    match kind:
        case StructType():
            return any(_has(each.dataType, wanted) for each in kind)
        case ArrayType():
            return _has(kind.elementType, wanted)
        case MapType():
            return _has(kind.valueType, wanted)
    return isinstance(kind, wanted)


def _exactly(value: bytes) -> Any:
    """Parse JSON; numbers with a point become Decimals with all of their digits."""
    return json.loads(value, parse_float=Decimal, parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    """Raise ValueError for NaN and infinities, which JSON does not have."""
    raise ValueError(f"{text} is no JSON")


def _converter(kind: DataType) -> Convert:
    """Return a function that checks and converts a parsed value to a Spark type."""
    match kind:
        case StructType():
            return _struct(kind)
        case ArrayType():
            return _list(_converter(kind.elementType))
        case MapType():
            if not isinstance(kind.keyType, StringType):
                raise ValueError(f"keys of JSON are text: a map can't be {kind.simpleString()}")
            return _map(_converter(kind.valueType))
        case ByteType() | ShortType() | IntegerType() | LongType():
            return _integer(_BITS[type(kind)], kind.simpleString())
        case DecimalType():
            return _decimal(kind)
    return _SINGLE[type(kind)]


def _struct(kind: StructType) -> Convert:
    """Return a converter of objects to dicts of the struct's fields."""
    fields = [(each.name, _converter(each.dataType)) for each in kind]

    def convert_struct(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise _unfit(value, "an object")
        found = {}
        for name, convert_field in fields:
            try:
                found[name] = convert_field(value.get(name))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return found

    return convert_struct


def _list(of_element: Convert) -> Convert:
    """Return a converter of lists."""

    def convert_list(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            raise _unfit(value, "a list")
        return [of_element(each) for each in value]

    return convert_list


def _map(of_value: Convert) -> Convert:
    """Return a converter of objects to lists of pairs, as Arrow takes maps."""

    def convert_map(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise _unfit(value, "an object")
        return [(name, of_value(each)) for name, each in value.items()]

    return convert_map


def _integer(bits: int, name: str) -> Convert:
    """Return a function that checks whole numbers of `bits` bits."""
    minimum, maximum = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert_integer(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not int:
            raise _unfit(value, f"a whole number ({name})")
        if not minimum <= value <= maximum:
            raise ValueError(f"{value} is out of range ({name})")
        return value

    return convert_integer


def _decimal(kind: DecimalType) -> Convert:
    """Return a converter of numbers, and of texts of numbers, to Decimals of a given type."""
    unit = Decimal(1).scaleb(-kind.scale)

    def convert_decimal(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is bool or not isinstance(value, int | Decimal | str):
            raise _unfit(value, f"a number ({kind.simpleString()})")
        try:
            with localcontext(prec=kind.precision) as context:
                context.rounding = "ROUND_HALF_UP"
                found = Decimal(value).quantize(unit)
        except InvalidOperation:
            raise ValueError(f"{value} does not fit into {kind.simpleString()}") from None
        if not found.is_finite():
            raise _unfit(value, "a number")
        return found

    return convert_decimal


def _text(value: Any) -> Any:
    """Return a text as it is, and any other value as JSON."""
    if value is None or type(value) is str:
        return value
    return orjson.dumps(value, default=_number).decode()


def _number(value: Any) -> float:
    """Return a Decimal as a float, for orjson."""
    return float(value)


def _boolean(value: Any) -> Any:
    """Return a boolean as it is."""
    if value is not None and type(value) is not bool:
        raise _unfit(value, "true or false")
    return value


def _float(value: Any) -> Any:
    """Return a number, or one of the texts NaN and Infinity, as a float."""
    if value is None:
        return None
    if type(value) is str and value in _NOT_NUMBERS:
        return float(_NOT_NUMBERS[value])
    if type(value) not in (int, float, Decimal):
        raise _unfit(value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{str(value)[:40]}... is out of range (double)") from None


def _binary(value: Any) -> Any:
    """Decode base64."""
    if value is None:
        return None
    if type(value) is not str:
        raise _unfit(value, "base64")
    return base64.b64decode(value, validate=True)


def _date(value: Any) -> Any:
    """Parse a date in ISO 8601."""
    if value is None:
        return None
    if type(value) is not str:
        raise _unfit(value, "a date")
    return date.fromisoformat(value)


def _timestamp(value: Any) -> Any:
    """Return seconds since 1970, or a time in ISO 8601, as a time with a zone."""
    if type(value) is int:
        try:
            return _EPOCH + timedelta(seconds=value)
        except OverflowError:
            raise ValueError(f"{value} seconds are out of range (timestamp)") from None
    found = _local_time(value)
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def _local_time(value: Any) -> Any:
    """Parse a time in ISO 8601, with or without a zone."""
    if value is None:
        return None
    if type(value) is not str:
        raise _unfit(value, "a time")
    return datetime.fromisoformat(value)


_SINGLE: dict[type[DataType], Convert] = {
    StringType: _text,
    BooleanType: _boolean,
    DoubleType: _float,
    FloatType: _float,
    BinaryType: _binary,
    DateType: _date,
    TimestampType: _timestamp,
    TimestampNTZType: _local_time,
}


def _unfit(value: Any, wanted: str) -> ValueError:
    """Return a ValueError that says what kind of value a type needs."""
    shown = orjson.dumps(value, default=str).decode()
    return ValueError(f"needs {wanted}, got {shown:.60}")
