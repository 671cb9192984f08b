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
    parser = _TypeParser(text)
    found = parser.read_type() if _ONE_TYPE.fullmatch(text) else parser.read_fields("")
    parser.expect_end()
    return found


class _TypeParser:
    """Parses one DDL text into a Spark type, word by word."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = _TOKEN.findall(text)
        self._at = 0

    def read_type(self) -> types.DataType:
        """Read the next type with its parameters."""
        name = self._next_word().lower()
        if name in _PRIMITIVE_TYPES:
            return _PRIMITIVE_TYPES[name]
        if name in _DECIMALS:
            return self._read_decimal()
        if name not in _NESTED:
            known = ", ".join([*_PRIMITIVE_TYPES, "decimal(p,s)", "array<>", "map<,>", "struct<>"])
            raise self._syntax_error(f"{name!r} is none of {known}")
        self._expect_word("<")
        found: types.DataType
        match name:
            case "array":
                found = types.ArrayType(self.read_type())
            case "map":
                key = self.read_type()
                self._expect_word(",")
                found = types.MapType(key, self.read_type())
            case _:
                found = self.read_fields(">")
        self._expect_word(">")
        return found

    def read_fields(self, end_word: str) -> types.StructType:
        """Read the fields of a struct up to `end_word`, which remains the next word."""
        found = types.StructType()
        while True:
            name = self._next_word()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            elif not re.fullmatch(r"\w+", name):
                raise self._syntax_error(f"a field's name can't be {name!r}")
            if name in found.names:
                raise self._syntax_error(f"field {name!r} is there twice")
            if self._peek_word() == ":":
                self._next_word()
            found.add(name, self.read_type())
            self._skip_remarks()
            if self._peek_word() == end_word:
                return found
            self._expect_word(",")

    def expect_end(self) -> None:
        """Raise ConfigError if the text goes on after the type."""
        if self._peek_word():
            raise self._syntax_error(f"{self._peek_word()!r} is too much")

    def _read_decimal(self) -> types.DecimalType:
        """Read precision and scale of a decimal, (10, 0) if they are not given."""
        digits = [10, 0]
        if self._peek_word() == "(":
            self._next_word()
            digits = [self._read_number(), 0]
            if self._peek_word() == ",":
                self._next_word()
                digits[1] = self._read_number()
            self._expect_word(")")
        if not 0 <= digits[1] <= digits[0] <= _DECIMAL_DIGITS_MAX or not digits[0]:
            raise self._syntax_error(f"decimal({digits[0]},{digits[1]}) can't be")
        return types.DecimalType(*digits)

    def _skip_remarks(self) -> None:
        """Skip NOT NULL and COMMENT, which make no difference to how a value is read."""
        if self._peek_word().lower() == "not":
            self._next_word()
            self._expect_word("null")
        if self._peek_word().lower() == "comment":
            self._next_word()
            self._next_word()

    def _read_number(self) -> int:
        """Read a whole number."""
        word = self._next_word()
        if not word.isdecimal():
            raise self._syntax_error(f"a number was to come, not {word!r}")
        return int(word)

    def _peek_word(self) -> str:
        """Return the next word without reading it, or an empty text at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next_word(self) -> str:
        """Read a word, or raise ConfigError at the end."""
        word = self._peek_word()
        if not word:
            raise self._syntax_error("it ends too early")
        self._at += 1
        return word

    def _expect_word(self, wanted: str) -> None:
        """Read a word, and raise ConfigError if it is another one than `wanted`."""
        found = self._next_word()
        if found.lower() != wanted:
            raise self._syntax_error(f"{wanted!r} was to come, not {found!r}")

    def _syntax_error(self, problem: str) -> ConfigError:
        """Create the ConfigError that quotes the text and says what is wrong with it."""
        return ConfigError(
            f"{self._text!r} is no schema: {problem}. Give a Spark type, or fields as "
            "'id BIGINT, tags ARRAY<STRING>'"
        )
