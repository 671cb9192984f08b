"""Convert Spark columns to the bytes that an application's serdes write, and back.

Serdes run in Python on batches of values: for what a user expects, for the rows that somebody looks
at, and for those whose bytes differ.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql import types
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from streams.errors import ConfigError, UserError
from streams.serdes import Serde
from streams.serdes.json_exactness import deserialize_exactly
from streams.spark.reconciliation.derivation.executors import pickle_for_executors
from streams.spark.serdes.json_writing import find_not_finite
from streams.spark.serdes.python_values import to_python_values

if TYPE_CHECKING:
    from pyspark.sql import Column

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


def to_text_column(serialized: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to text for people.

    A value that is not plain becomes JSON. Bytes that the serde can't read are shown in
    hexadecimal.
    """
    pickled = _pickle_serde(serde)
    if serde.name == "bytes" or pickled is None:
        return F.concat(F.lit("0x"), F.lower(F.hex(serialized)))
    return _apply_in_python(pickled, pa.string(), format_value)(serialized)


def to_number_or_text_column(serialized: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to Spark's own type if the serde is a plain one, or to text."""
    if serde.name == "bytes":
        return serialized
    pickled = _pickle_serde(serde)
    if serde.name in _NUMBERS and pickled is not None:
        return _apply_in_python(pickled, _NUMBERS[serde.name], _decode_number)(serialized)
    return to_text_column(serialized, serde)


def to_bytes_column(
    column: Column, data_type: types.DataType, serde: Serde[Any], column_name: str
) -> Column:
    """Serialize a user's column with the application's serde; BINARY is taken as it is.

    Raises: ConfigError, with the name of the column, for a type that the serde can't take.
    """
    if isinstance(data_type, types.BinaryType):
        return column
    pickled = _pickle_serde(serde)
    fits = isinstance(data_type, _ACCEPTED_TYPES.get(serde.name, types.DataType))
    if serde.name == "bytes" or pickled is None or not fits:
        raise ConfigError(
            f"column {column_name!r} is of type {data_type.simpleString()}, and the application's "
            f"serde there is {serde.name}: cast it, or give the bytes themselves (BINARY)"
        )

    def serialize_batch(values: pa.Array) -> pa.Array:
        own_serde = pickle.loads(pickled)  # nosec B301 # the driver has pickled it
        return serialize_column(values, column_name, own_serde)

    serialized: Column = arrow_udf(serialize_batch, "binary")(  # type: ignore[call-overload]
        column
    )
    return serialized


def serialize_column(column: pa.Array, column_name: str, serde: Serde[Any]) -> pa.Array:
    """Serialize an Arrow array of a user's values; null stays null.

    Raises ConfigError for a value that the serde refuses, and UserError for one that Python does
    not have, as a time beyond the year 9999.
    """
    values = to_python_values(column, column_name, serde.name)
    found = [None if each is None else _serialize_value(serde, each) for each in values]
    return pa.array(found, pa.binary())


def to_canonical_bytes(data: Column, serde: Serde[Any]) -> Column:
    """Convert serialized bytes to a form that is equal whenever the values are equal.

    The members of JSON are sorted. Bytes of other serdes, and what is no JSON, stay as they are.
    """
    pickled = _pickle_serde(serde)
    if not serde.name.startswith("json") or pickled is None:
        return data
    return _apply_in_python(pickled, pa.binary(), sort_json_members)(data)


def compare_values(one: Column, other: Column, serde: Serde[Any], tolerance: float) -> Column:
    """Compare two columns of serialized bytes by the values that the serde reads from them.

    Returns a column of BOOLEAN, for rows whose bytes differ; it is false where the bytes are equal.
    Floats may differ by `tolerance` (absolute).
    """
    pickled = _pickle_serde(serde)
    if serde.name in _COMPARED_AS_BYTES or pickled is None:
        return F.lit(False)

    def compare_batch(ones: pa.Array, others: pa.Array) -> pa.Array:
        read = pickle.loads(pickled).deserialize  # nosec B301 # the driver has pickled it
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
        return _are_numbers_close(one, other, tolerance)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            are_close(one[k], other[k], tolerance) for k in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(are_close(a, b, tolerance) for a, b in pairs)
    return bool(one == other)


def _are_numbers_close(one: float, other: float, tolerance: float) -> bool:
    """Return whether two numbers differ by the tolerance at most; an int keeps all of its digits.

    2^53 + 1, which no float equals, is not 2.0^53, and one of 400 digits not infinite.
    """
    if not (_is_finite(one) and _is_finite(other)):
        return one == other or (one != one and other != other)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.0, abs_tol=tolerance)
    return abs(Fraction(one) - Fraction(other)) <= tolerance


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _list_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass object by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _pickle_serde(serde: Serde[Any]) -> bytes | None:
    """Pickle a serde for executors, or return None if it holds a connection or a lock."""
    try:
        return pickle_for_executors(Serde(serde.name, serde.serialize, serde.deserialize))
    except UserError:
        return None


def _apply_in_python(
    pickled_serde: bytes, result_type: pa.DataType, function: Callable[[Serde[Any], Any], Any]
) -> Callable[[Column], Column]:
    """Create a function of columns that applies a Python function to batches of values."""

    def apply_to_batch(column: pa.Array) -> pa.Array:
        serde = pickle.loads(pickled_serde)  # nosec B301 # the driver has pickled it
        values = column.to_pylist()
        found = [None if each is None else function(serde, each) for each in values]
        return pa.array(found, result_type)

    apply_to_column: Callable[[Column], Column] = arrow_udf(  # type: ignore[call-overload]
        apply_to_batch, from_arrow_type(result_type)
    )
    return apply_to_column


def format_value(serde: Serde[Any], data: bytes) -> str:
    """Format bytes as the text of their value, or in hexadecimal if they can't be read."""
    try:
        value = serde.deserialize(data)
    except Exception:  # what a serde can't read is shown as it is
        return "0x" + data.hex()
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()  # of what UTF-8 doesn't have
    try:
        text = orjson.dumps(value, option=_JSON_OPTIONS).decode()
        # orjson writes null for what is not finite.
        return repr(value) if "null" in text and find_not_finite(value, "") else text
    except TypeError:
        pass
    try:
        return repr(value).encode(errors="backslashreplace").decode()
    except Exception:  # what a user's class raises, and RecursionError
        return "0x" + data.hex()


def _decode_number(serde: Serde[Any], data: bytes) -> Any:
    """Decode a number; return None for bytes that are none."""
    try:
        return serde.deserialize(data)
    except Exception:  # what a serde can't read is null
        return None


def sort_json_members(serde: Serde[Any], data: bytes) -> bytes:
    """Sort the members of a JSON value; return other bytes as they are."""
    try:
        value = deserialize_exactly(data)
    except ValueError:
        return data
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # It is deeper than orjson writes, or has integers of more than 64 bits.
        try:
            text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            return data
        return text.encode()


def _serialize_value(serde: Serde[Any], value: Any) -> bytes:
    """Serialize a value. Raises ConfigError if the serde fails."""
    try:
        return serde.serialize(value)
    except Exception as error:  # whatever a user's serde raises
        raise ConfigError(
            f"what is expected can't be written by the application's serde {serde.name}: "
            f"{error} (the value is {value!r:.200})"
        ) from error
