"""Convert columns of Spark to bytes as an application's serdes write them, and back.

Text and integers are converted by Spark itself. Other serdes run in Python on batches, and only for
the rows that somebody looks at, or whose bytes differ.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from pyspark.cloudpickle import dumps, loads
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column

_BY_NAME: dict[str, Serde[Any]] = {
    serde.name: serde
    for serde in (serdes.bytes, serdes.string, serdes.int32, serdes.int64, serdes.float64)
}
_INTEGERS = {"int32": (4, "INT"), "int64": (8, "BIGINT")}
"""Bytes, and Spark's type."""
_SHOWN = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS


class Portable:
    """Represents a serde that can be pickled for executors.

    A plain serde goes by its name, another with its functions. One that can't be pickled (it has a
    connection, a lock) leaves bytes as they are: `is_available` is False.
    """

    def __init__(self, serde: Serde[Any]) -> None:
        self._serde = serde
        self._sent: bytes | None = None
        if _BY_NAME.get(serde.name) is not serde:
            try:
                functions = (serde.serialize, serde.deserialize)
                self._sent = dumps(functions)  # type: ignore[no-untyped-call]
            except Exception:  # whatever a user's object raises when it is pickled
                self._sent = b""

    @property
    def name(self) -> str:
        """Return the name of the serde."""
        return self._serde.name

    @property
    def reads(self) -> bool:
        """Whether executors can have the serde, so that they can read bytes with it."""
        return self._sent != b""

    def functions(self) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
        """Return the functions that serialize and deserialize a value."""
        return self._serde.serialize, self._serde.deserialize

    def __reduce__(self) -> tuple[Any, ...]:
        if self._sent is None:
            return _named, (self._serde.name,)
        return _unpacked, (self._serde.name, self._sent)


def _named(name: str) -> Portable:
    """Create one of the plain serdes on an executor, by its name."""
    return Portable(_BY_NAME[name])


def _unpacked(name: str, sent: bytes) -> Portable:
    """Create a serde on an executor from its pickled functions."""
    serialize, deserialize = loads(sent)
    serde = Portable.__new__(Portable)
    serde._serde, serde._sent = Serde(name, serialize, deserialize), sent
    return serde


def text_of(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to text for people.

    A value that is not plain becomes JSON. Bytes that the serde can't read are shown in
    hexadecimal.
    """
    if serde.name in _INTEGERS:
        size, _ = _INTEGERS[serde.name]
        whole = F.octet_length(data) == size
        return F.when(whole, _integer(data, serde.name).cast("STRING")).otherwise(_hex(data))
    if serde.name == "string":
        return F.coalesce(F.try_validate_utf8(data.cast("STRING")), _hex(data))
    portable = Portable(serde)
    if serde.name == "bytes" or not portable.reads:
        return _hex(data)
    return _in_python(portable, "string", _texts)(data)


def typed_of(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to Spark's own type if the serde is a plain one, or to text."""
    if serde.name == "bytes":
        return data
    if serde.name in _INTEGERS:
        whole = F.octet_length(data) == _INTEGERS[serde.name][0]
        return F.when(whole, _integer(data, serde.name))
    if serde.name == "float64":
        return _in_python(Portable(serde), "double", _floats)(data)
    return text_of(data, serde)


def bytes_of(column: Column, kind: DataType, serde: Serde[Any], name: str) -> Column:
    """Serialize a user's column with the application's serde; BINARY is taken as it is.

    Raises: ConfigError, with the name of the column, for a type that the serde can't take.
    """
    if isinstance(kind, BinaryType):
        return column
    if serde.name in _INTEGERS:
        if not isinstance(kind, ByteType | ShortType | IntegerType | LongType):
            raise _unfit(name, kind, serde)
        size, _ = _INTEGERS[serde.name]
        fitting = column.cast("INT") if size == 4 else column.cast("BIGINT")  # raises on overflow
        digits = F.lpad(F.hex(fitting.cast("BIGINT")), 16, "0")
        return F.unhex(F.substring(digits, 17 - 2 * size, 2 * size))
    if serde.name == "string":
        if not isinstance(kind, StringType):
            raise _unfit(name, kind, serde)
        return column.cast("BINARY")
    portable = Portable(serde)
    if serde.name == "bytes" or not portable.reads:
        raise _unfit(name, kind, serde)
    return _in_python(portable, "binary", _serialized)(column)


def canonical(data: Column, serde: Serde[Any]) -> Column:
    """Convert bytes to a form that is equal where the values are equal.

    The members of JSON are sorted. Bytes of other serdes, and what is no JSON, stay as they are.
    """
    portable = Portable(serde)
    if not serde.name.startswith("json") or not portable.reads:
        return data
    return _in_python(portable, "binary", _sorted)(data)


def equal(one: Column, other: Column, serde: Serde[Any], tolerance: float) -> Column:
    """Compare two columns of bytes by the values that the serde reads of them.

    Returns a column of BOOLEAN, for rows whose bytes differ; it is false where the bytes are equal.
    Floats may differ by `tolerance` (absolute).
    """
    portable = Portable(serde)
    if serde.name in ("bytes", "string", *_INTEGERS) or not portable.reads:
        return F.lit(False)

    def compare_batch(ones: pa.Array, others: pa.Array) -> pa.Array:
        _, read = portable.functions()
        pairs = zip(ones.to_pylist(), others.to_pylist(), strict=True)
        return pa.array([_equal(read, a, b, tolerance) for a, b in pairs], pa.bool_())

    differ = one != other
    compared: Column = arrow_udf(compare_batch, "boolean")(  # type: ignore[call-overload]
        F.when(differ, one), F.when(differ, other)
    )
    return compared


def _equal(
    read: Callable[[bytes], Any], one: bytes | None, other: bytes | None, tolerance: float
) -> bool:
    """Whether the values of two byte strings are equal; False if one of them can't be read."""
    if one is None or other is None:
        return False
    try:
        return close(read(one), read(other), tolerance)
    except Exception:  # what a serde can't read is equal to nothing
        return False


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values are equal, floats in them within `tolerance`, whatever their size."""
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        one, other = (_fields(one), _fields(other))
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, float) or isinstance(other, float):
        if not isinstance(one, int | float) or not isinstance(other, int | float):
            return False
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=0.0, abs_tol=tolerance)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k], tolerance) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(close(a, b, tolerance) for a, b in pairs)
    return bool(one == other)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass object by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _integer(data: Column, name: str) -> Column:
    """Decode a column of big-endian integers."""
    size, kind = _INTEGERS[name]
    number = F.conv(F.hex(data), 16, -10).cast("BIGINT")
    if size == 4:
        number = F.when(number >= 2**31, number - 2**32).otherwise(number)
    return number.cast(kind)


def _hex(data: Column) -> Column:
    """Format a column of bytes as hexadecimal text that begins with 0x."""
    return F.concat(F.lit("0x"), F.lower(F.hex(data)))


def _unfit(name: str, kind: DataType, serde: Serde[Any]) -> ConfigError:
    """Create the error for a column whose type the serde can't serialize."""
    return ConfigError(
        f"column {name!r} is of type {kind.simpleString()}, and the application's serde there is "
        f"{serde.name}: cast it, or give the bytes themselves (BINARY)"
    )


def _in_python(
    portable: Portable, kind: str, function: Callable[[Portable, list[Any]], pa.Array]
) -> Callable[[Column], Column]:
    """Create a column function that applies a Python function to batches of values."""

    def apply_to_batch(column: pa.Array) -> pa.Array:
        return function(portable, column.to_pylist())

    apply_to_column: Callable[[Column], Column] = arrow_udf(apply_to_batch, kind)  # type: ignore[call-overload]
    return apply_to_column


def _texts(portable: Portable, column: list[bytes | None]) -> pa.Array:
    """Format each value of a batch as text."""
    _, read = portable.functions()
    return pa.array([None if d is None else _text(read, d) for d in column], pa.string())


def _text(read: Callable[[bytes], Any], data: bytes) -> str:
    """Format bytes as the text of their value, or in hexadecimal if they can't be read."""
    try:
        value = read(data)
    except Exception:  # what a serde can't read is shown as it is
        return "0x" + data.hex()
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=_SHOWN).decode()
    except TypeError:
        return repr(value)


def _floats(portable: Portable, column: list[bytes | None]) -> pa.Array:
    """Decode each value of a batch of floats, null if it has not 8 bytes."""
    _, read = portable.functions()
    return pa.array([None if d is None or len(d) != 8 else read(d) for d in column], pa.float64())


def _sorted(portable: Portable, column: list[bytes | None]) -> pa.Array:
    """Sort the members of each JSON value of a batch."""
    return pa.array([None if d is None else _canonical(d) for d in column], pa.binary())


def _canonical(data: bytes) -> bytes:
    """Sort the members of a JSON value; return other bytes as they are."""
    try:
        return orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS)
    except ValueError:
        return data


def _serialized(portable: Portable, column: list[Any]) -> pa.Array:
    """Serialize each value of a batch."""
    write, _ = portable.functions()
    return pa.array(
        [None if v is None else _written(portable, write, v) for v in column], pa.binary()
    )


def _written(portable: Portable, write: Callable[[Any], bytes], value: Any) -> bytes:
    """Serialize a value. Raises ConfigError if the serde fails."""
    try:
        return write(value)
    except Exception as error:  # whatever a user's serde raises
        raise ConfigError(
            f"what is expected can't be written by the application's serde {portable.name}: "
            f"{error} (the value is {value!r:.200})"
        ) from error
