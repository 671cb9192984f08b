"""Convert numbers, bytes and texts of Avro to Python's types of logical types, and back.

Both directions are exact: a value that would come back as another one is refused, as a time with
microseconds where the schema has milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from state.shown_values import describe_value, quote_value
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import AvroType

Convert = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = _EPOCH.replace(tzinfo=None)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_DAY_US = 24 * 3600 * 1_000_000

PYTHON_TYPES: dict[str, type[Any]] = {
    "date": date,
    "time-millis": time,
    "time-micros": time,
    "timestamp-millis": datetime,
    "timestamp-micros": datetime,
    "local-timestamp-millis": datetime,
    "local-timestamp-micros": datetime,
    "uuid": UUID,
    "decimal": Decimal,
}
"""Python's type of each logical type."""


def create_logical_reader(schema: AvroType, *, passes_numbers: bool) -> Convert:
    """Return the function that converts a number, bytes or a text to the type of a logical type.

    A time that Python has none for is given as its number with `passes_numbers`, else refused with
    AvroMismatch.
    """
    convert = _create_logical_value_reader(schema)
    logical_type = schema.logical_type

    def read_logical_type(raw: Any) -> Any:
        try:
            return convert(raw)
        except (OverflowError, ValueError):
            if passes_numbers and isinstance(raw, int):
                return raw
        if not isinstance(raw, int):
            raise AvroMismatch(f"{quote_value(raw)} is no {logical_type}")
        raise AvroMismatch(
            f"Python has no {PYTHON_TYPES[logical_type].__name__} for {logical_type} "
            f"{quote_value(raw)}: read it by a schema without the logicalType, or with "
            "beyond_python='number'"
        )

    return read_logical_type


def create_logical_writer(schema: AvroType, *, passes_numbers: bool) -> Convert:
    """Return the function that converts a Python value to a logical type's number, bytes or text.

    It raises AvroMismatch for a value of another type, and for one that would come back changed.
    """
    convert = _create_writer(schema)
    read = _create_logical_value_reader(schema)
    logical_type, python_type = schema.logical_type, PYTHON_TYPES[schema.logical_type]
    limit = 2 ** (31 if schema.kind == "int" else 63)

    def write_logical_type(value: Any) -> Any:
        if type(value) is python_type:
            return convert(value)
        if type(value) is int and passes_numbers and python_type not in (UUID, Decimal):
            if not -limit <= value < limit:
                raise AvroMismatch(f"{schema.kind} does not hold {quote_value(value)}")
            try:
                read(value)
            except (OverflowError, ValueError):
                return value
        raise AvroMismatch(
            f"{logical_type} needs {python_type.__name__}, got {describe_value(value)}"
        )

    return write_logical_type


def _create_logical_value_reader(schema: AvroType) -> Convert:
    match schema.logical_type:
        case "date":
            return lambda days: date.fromordinal(days + _EPOCH_DAY)
        case "time-millis":
            return lambda number: _to_time(number * 1_000)
        case "time-micros":
            return _to_time
        case "timestamp-millis":
            return lambda number: _EPOCH + timedelta(milliseconds=number)
        case "timestamp-micros":
            return lambda number: _EPOCH + timedelta(microseconds=number)
        case "local-timestamp-millis":
            return lambda number: _LOCAL_EPOCH + timedelta(milliseconds=number)
        case "local-timestamp-micros":
            return lambda number: _LOCAL_EPOCH + timedelta(microseconds=number)
        case "uuid":
            return UUID
    scale = schema.properties.get("scale", 0)
    return lambda data: _to_decimal(data, scale)


def _to_time(microseconds: int) -> time:
    if not 0 <= microseconds < _DAY_US:
        raise ValueError(microseconds)
    return (_LOCAL_EPOCH + timedelta(microseconds=microseconds)).time()


def _to_decimal(data: bytes, scale: int) -> Decimal:
    if not data:
        raise ValueError(data)
    unscaled = int.from_bytes(data, "big", signed=True)
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _create_writer(schema: AvroType) -> Convert:
    match schema.logical_type:
        case "date":
            return lambda day: day.toordinal() - _EPOCH_DAY
        case "time-millis":
            return lambda of_day: _to_milliseconds(_write_time(of_day), of_day)
        case "time-micros":
            return _write_time
        case "timestamp-millis":
            return lambda at: _to_milliseconds(_write_timestamp(at), at)
        case "timestamp-micros":
            return _write_timestamp
        case "local-timestamp-millis":
            return lambda at: _to_milliseconds(_write_local_timestamp(at), at)
        case "local-timestamp-micros":
            return _write_local_timestamp
        case "uuid":
            return str
    return _create_decimal_writer(schema)


def _to_milliseconds(microseconds: int, value: Any) -> int:
    if microseconds % 1_000:
        raise AvroMismatch(
            f"the schema has milliseconds, and {quote_value(value)} would be cut to them"
        )
    return microseconds // 1_000


def _write_time(value: time) -> int:
    if value.tzinfo is not None or value.fold:
        raise AvroMismatch(f"a time of day has no zone and no fold, got {quote_value(value)}")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _write_timestamp(value: datetime) -> int:
    if str(value.tzinfo) != "UTC":
        raise AvroMismatch(
            f"a timestamp comes back in UTC, got {quote_value(value)}: give it "
            + ("a zone" if value.tzinfo is None else "as .astimezone(datetime.UTC)")
        )
    return (value - _EPOCH) // _MICROSECOND


def _write_local_timestamp(value: datetime) -> int:
    if value.tzinfo is not None or value.fold:
        raise AvroMismatch(
            f"a local timestamp comes back without zone and fold, got {quote_value(value)}"
        )
    return (value - _LOCAL_EPOCH) // _MICROSECOND


def _create_decimal_writer(schema: AvroType) -> Convert:
    scale, precision = schema.properties.get("scale", 0), schema.properties["precision"]
    unit = str(Decimal((0, (1,), -scale)))
    size = schema.properties["size"] if schema.kind == "fixed" else None

    def write_decimal(value: Decimal) -> bytes:
        sign, digits, exponent = value.as_tuple()
        if exponent != -scale or (sign and not any(digits)):
            raise AvroMismatch(
                f"the schema has scale {scale}, and {quote_value(value)} would come back as "
                f"another Decimal: give it as .quantize(Decimal({unit!r}))"
            )
        if len(digits) > precision:
            raise AvroMismatch(f"the schema has precision {precision}, got {quote_value(value)}")
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        if size is not None and length > size:
            raise AvroMismatch(f"{size} bytes do not hold {quote_value(value)}")
        return unscaled.to_bytes(size or length, "big", signed=True)

    return write_decimal
