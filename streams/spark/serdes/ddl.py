"""Parse Spark's types from their DDL text, without a JVM.

pyspark hands such text to the JVM, and a data source is planned and run in Python processes that
have none. The grammar is that of types that describe JSON: one type, or the fields of a struct, as
`id BIGINT, tags ARRAY<STRING>`. Every field can be null, as with Spark's from_json.
Source: DataType.fromDDL and the grammar of types in SqlBaseParser.g4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import types

from streams.errors import ConfigError

_PRIMITIVE_TYPES: Mapping[str, types.DataType] = {
    "boolean": types.BooleanType(),
    "tinyint": types.ByteType(),
    "byte": types.ByteType(),
    "smallint": types.ShortType(),
    "short": types.ShortType(),
    "int": types.IntegerType(),
    "integer": types.IntegerType(),
    "bigint": types.LongType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "real": types.FloatType(),
    "double": types.DoubleType(),
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "date": types.DateType(),
    "timestamp": types.TimestampType(),
    "timestamp_ltz": types.TimestampType(),
    "timestamp_ntz": types.TimestampNTZType(),
}
_DECIMALS = ("decimal", "dec", "numeric")
_NESTED = ("array", "map", "struct")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\w+|\S)")
_ONE_TYPE = re.compile(r"\s*\w+\s*([<(].*)?", re.DOTALL)
_DECIMAL_DIGITS_MAX = 38


def parse_type(text: str) -> types.DataType:
    """Parse one type, or the fields of a struct, into a Spark type. Raises ConfigError."""
    words = _TOKEN.findall(text)[::-1]  # a stack: the next word is the last
    try:
        found = _read_type(words) if _ONE_TYPE.fullmatch(text) else _read_fields(words, end_word="")
        if words:
            raise ValueError(f"{words[-1]!r} is too much")
    except IndexError:
        problem = "it ends too early"
    except ValueError as error:
        problem = str(error)
    else:
        return found
    raise ConfigError(
        f"{text!r} is no schema: {problem}. Give a Spark type, or fields as "
        "'id BIGINT, tags ARRAY<STRING>'"
    )


def _read_type(words: list[str]) -> types.DataType:
    """Read the next type with its parameters. Raises ValueError, or IndexError at the end."""
    name = words.pop().lower()
    if name in _PRIMITIVE_TYPES:
        return _PRIMITIVE_TYPES[name]
    if name in _DECIMALS:
        return _read_decimal(words)
    if name not in _NESTED:
        known = ", ".join([*_PRIMITIVE_TYPES, "decimal(p,s)", "array<>", "map<,>", "struct<>"])
        raise ValueError(f"{name!r} is none of {known}")
    _pop_required_word(words, "<")
    found: types.DataType
    match name:
        case "array":
            found = types.ArrayType(_read_type(words))
        case "map":
            key = _read_type(words)
            _pop_required_word(words, ",")
            found = types.MapType(key, _read_type(words))
        case _:
            found = _read_fields(words, end_word=">")
    _pop_required_word(words, ">")
    return found


def _read_fields(words: list[str], end_word: str) -> types.StructType:
    """Read the fields of a struct up to `end_word`, which remains the next word."""
    found = types.StructType()
    while True:
        name = words.pop()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            raise ValueError(f"a field's name can't be {name!r}")
        if name in found.names:
            raise ValueError(f"field {name!r} is there twice")
        _try_pop_word(words, ":")
        found.add(name, _read_type(words))
        # What follows makes no difference to how a value is read.
        if _try_pop_word(words, "not"):
            _pop_required_word(words, "null")
        if _try_pop_word(words, "comment"):
            words.pop()
        if "".join(words[-1:]) == end_word:
            return found
        _pop_required_word(words, ",")


def _read_decimal(words: list[str]) -> types.DecimalType:
    """Read precision and scale of a decimal, (10, 0) if they are not given."""
    precision, scale = 10, 0
    if _try_pop_word(words, "("):
        precision = _read_number(words)
        scale = _read_number(words) if _try_pop_word(words, ",") else 0
        _pop_required_word(words, ")")
    if not 0 <= scale <= precision <= _DECIMAL_DIGITS_MAX or not precision:
        raise ValueError(f"decimal({precision},{scale}) can't be")
    return types.DecimalType(precision, scale)


def _read_number(words: list[str]) -> int:
    """Read a whole number."""
    word = words.pop()
    if not word.isdecimal():
        raise ValueError(f"a number was to come, not {word!r}")
    return int(word)


def _try_pop_word(words: list[str], wanted_word: str) -> bool:
    """Read the next word if it is `wanted_word`, and return whether it was."""
    if not words or words[-1].lower() != wanted_word:
        return False
    words.pop()
    return True


def _pop_required_word(words: list[str], required_word: str) -> None:
    """Read a word, and raise ValueError if it is another one than `required_word`."""
    found = words.pop()
    if found.lower() != required_word:
        raise ValueError(f"{required_word!r} was to come, not {found!r}")
