"""Convert Spark columns to the bytes that an application's serdes write, and back.

Serdes run in Python on batches of values: for what a user expects, for the rows that somebody looks
at, and for those whose bytes differ.
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
from pyspark.sql import types
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column

_BY_NAME: dict[str, Serde[Any]] = {
    serde.name: serde
    for serde in (serdes.bytes, serdes.string, serdes.int32, serdes.int64, serdes.float64)
}
_NUMBERS = {"int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
_INTEGER_TYPES = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_ACCEPTED_TYPES: dict[str, Any] = {
    "int32": _INTEGER_TYPES,
    "int64": _INTEGER_TYPES,
    "string": types.StringType,
}
"""The types of Spark whose values a serde writes; other serdes say so value by value."""
_COMPARED_AS_BYTES = ("bytes", "string", "int32", "int64")
_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS


class ExecutorSerde:
    """Represents a serde that can be pickled for executors.

    A plain serde goes by its name, another with its functions. One that can't be pickled (it has a
    connection, a lock) leaves bytes as they are: `is_available` is False.
    """

    def __init__(self, serde: Serde[Any]) -> None:
        self._serde = serde
        self._pickled: bytes | None = None
        if _BY_NAME.get(serde.name) is not serde:
            try:
                functions = (serde.serialize, serde.deserialize)
                self._pickled = dumps(functions)  # type: ignore[no-untyped-call]
            except Exception:  # whatever a user's object raises when it is pickled
                self._pickled = b""

    @property
    def name(self) -> str:
        """Return the name of the serde."""
        return self._serde.name

    @property
    def is_available(self) -> bool:
        """Return whether the serde could be pickled, so that executors can use it."""
        return self._pickled != b""

    def load_functions(self) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
        """Return the functions that serialize and deserialize a value."""
        return self._serde.serialize, self._serde.deserialize

    def __reduce__(self) -> tuple[Any, ...]:
        if self._pickled is None:
            return _create_plain_serde, (self._serde.name,)
        return _unpickle_serde, (self._serde.name, self._pickled)


def _create_plain_serde(name: str) -> ExecutorSerde:
    """Create one of the plain serdes on an executor, by its name."""
    return ExecutorSerde(_BY_NAME[name])


def _unpickle_serde(name: str, pickled: bytes) -> ExecutorSerde:
    """Create on an executor the serde whose functions were pickled."""
    serialize, deserialize = loads(pickled)
    serde = ExecutorSerde.__new__(ExecutorSerde)
    serde._serde, serde._pickled = Serde(name, serialize, deserialize), pickled
    return serde


def to_text_column(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to text for people.

    A value that is not plain becomes JSON. Bytes that the serde can't read are shown in
    hexadecimal.
    """
    portable = ExecutorSerde(serde)
    if serde.name == "bytes" or not portable.is_available:
        return F.concat(F.lit("0x"), F.lower(F.hex(data)))
    return _apply_in_python(portable, pa.string(), _format_value)(data)


def to_typed_column(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to Spark's own type if the serde is a plain one, or to text."""
    if serde.name == "bytes":
        return data
    if serde.name in _NUMBERS:
        return _apply_in_python(ExecutorSerde(serde), _NUMBERS[serde.name], _decode_number)(data)
    return to_text_column(data, serde)


def to_bytes_column(
    column: Column, data_type: types.DataType, serde: Serde[Any], column_name: str
) -> Column:
    """Serialize a user's column with the application's serde; BINARY is taken as it is.

    Raises: ConfigError, with the name of the column, for a type that the serde can't take.
    """
    if isinstance(data_type, types.BinaryType):
        return column
    portable = ExecutorSerde(serde)
    fits = isinstance(data_type, _ACCEPTED_TYPES.get(serde.name, types.DataType))
    if serde.name == "bytes" or not portable.is_available or not fits:
        raise ConfigError(
            f"column {column_name!r} is of type {data_type.simpleString()}, and the application's "
            f"serde there is {serde.name}: cast it, or give the bytes themselves (BINARY)"
        )
    return _apply_in_python(portable, pa.binary(), _serialize_value)(column)


def to_canonical_bytes(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to a form that is equal whenever the values are equal.

    The members of JSON are sorted. Bytes of other serdes, and what is no JSON, stay as they are.
    """
    portable = ExecutorSerde(serde)
    if not serde.name.startswith("json") or not portable.is_available:
        return data
    return _apply_in_python(portable, pa.binary(), _sort_json_members)(data)


def compare_values(one: Column, other: Column, serde: Serde[Any], tolerance: float) -> Column:
    """Compare two columns of serialized bytes by the values that the serde reads from them.

    Returns a column of BOOLEAN, for rows whose bytes differ; it is false where the bytes are equal.
    Floats may differ by `tolerance` (absolute).
    """
    portable = ExecutorSerde(serde)
    if serde.name in _COMPARED_AS_BYTES or not portable.is_available:
        return F.lit(False)

    def compare_batch(ones: pa.Array, others: pa.Array) -> pa.Array:
        _, read = portable.load_functions()
        pairs = zip(ones.to_pylist(), others.to_pylist(), strict=True)
        return pa.array([_are_values_equal(read, a, b, tolerance) for a, b in pairs], pa.bool_())

    differ = one != other
    compared: Column = arrow_udf(compare_batch, "boolean")(  # type: ignore[call-overload]
        F.when(differ, one), F.when(differ, other)
    )
    return compared


def _are_values_equal(
    deserialize: Callable[[bytes], Any], one: bytes | None, other: bytes | None, tolerance: float
) -> bool:
    """Return whether the values of two byte strings are equal; False if one can't be read."""
    if one is None or other is None:
        return False
    try:
        return are_close(deserialize(one), deserialize(other), tolerance)
    except Exception:  # what a serde can't read is equal to nothing
        return False


def are_close(one: Any, other: Any, tolerance: float) -> bool:
    """Return whether two values are equal, where floats may differ by the absolute `tolerance`."""
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        one, other = (_list_fields(one), _list_fields(other))
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, float) or isinstance(other, float):
        if not isinstance(one, int | float) or not isinstance(other, int | float):
            return False
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=0.0, abs_tol=tolerance)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            are_close(one[k], other[k], tolerance) for k in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(are_close(a, b, tolerance) for a, b in pairs)
    return bool(one == other)


def _list_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass object by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _apply_in_python(
    serde: ExecutorSerde, result_type: pa.DataType, function: Callable[[ExecutorSerde, Any], Any]
) -> Callable[[Column], Column]:
    """Create a function of columns that applies a Python function to batches of values."""

    def apply_to_batch(column: pa.Array) -> pa.Array:
        values = column.to_pylist()
        found = [None if each is None else function(serde, each) for each in values]
        return pa.array(found, result_type)

    apply_to_column: Callable[[Column], Column] = arrow_udf(  # type: ignore[call-overload]
        apply_to_batch, from_arrow_type(result_type)
    )
    return apply_to_column


def _format_value(serde: ExecutorSerde, data: bytes) -> str:
    """Format bytes as the text of their value, or in hexadecimal if they can't be read."""
    _, deserialize = serde.load_functions()
    try:
        value = deserialize(data)
    except Exception:  # what a serde can't read is shown as it is
        return "0x" + data.hex()
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=_JSON_OPTIONS).decode()
    except TypeError:
        return repr(value)


def _decode_number(serde: ExecutorSerde, data: bytes) -> Any:
    """Decode a number; return None for bytes that are none."""
    _, deserialize = serde.load_functions()
    try:
        return deserialize(data)
    except Exception:  # what a serde can't read is null
        return None


def _sort_json_members(serde: ExecutorSerde, data: bytes) -> bytes:
    """Sort the members of a JSON value; return other bytes as they are."""
    try:
        return orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS)
    except ValueError:
        return data


def _serialize_value(serde: ExecutorSerde, value: Any) -> bytes:
    """Serialize a value. Raises ConfigError if the serde fails."""
    serialize, _ = serde.load_functions()
    try:
        return serialize(value)
    except Exception as error:  # whatever a user's serde raises
        raise ConfigError(
            f"what is expected can't be written by the application's serde {serde.name}: "
            f"{error} (the value is {value!r:.200})"
        ) from error
