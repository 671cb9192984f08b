"""Parse Spark's types from their DDL text, without a JVM.

pyspark hands such text to the JVM, and a data source is planned and run in Python processes that
have none. The grammar is that of types that describe JSON: one type, or the fields of a struct, as
`id BIGINT, tags ARRAY<STRING>`. Every field can be null, as with Spark's from_json.
Source: DataType.fromDDL and the grammar of types in SqlBaseParser.g4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streams.errors import ConfigError

_PLAIN: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ltz": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}
_DECIMALS = ("decimal", "dec", "numeric")
_NESTED = ("array", "map", "struct")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\w+|\S)")
_ONE_TYPE = re.compile(r"\s*\w+\s*([<(].*)?", re.DOTALL)
_DECIMAL_DIGITS_MAX = 38


def parse_type(text: str) -> DataType:
    """Parse one type, or the fields of a struct, into a Spark type. Raises ConfigError."""
    parser = _Parser(text)
    found = parser.type() if _ONE_TYPE.fullmatch(text) else parser.fields("")
    parser.end()
    return found


class _Parser:
    """Parses the words of one text in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = _TOKEN.findall(text)
        self._at = 0

    def type(self) -> DataType:
        """Read a type."""
        name = self._next().lower()
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _DECIMALS:
            return self._decimal()
        if name not in _NESTED:
            known = ", ".join([*_PLAIN, "decimal(p,s)", "array<>", "map<,>", "struct<>"])
            raise self._wrong(f"{name!r} is none of {known}")
        self._expect("<")
        found: DataType
        match name:
            case "array":
                found = ArrayType(self.type())
            case "map":
                key = self.type()
                self._expect(",")
                found = MapType(key, self.type())
            case _:
                found = self.fields(">")
        self._expect(">")
        return found

    def fields(self, end: str) -> StructType:
        """Read the fields of a struct up to `end_word`, which is left to be read."""
        found: dict[str, DataType] = {}
        while True:
            name = self._next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            elif not re.fullmatch(r"\w+", name):
                raise self._wrong(f"a field's name can't be {name!r}")
            if name in found:
                raise self._wrong(f"field {name!r} is there twice")
            if self._peek() == ":":
                self._next()
            found[name] = self.type()
            self._remarks()
            if self._peek() == end:
                return StructType([StructField(name, kind) for name, kind in found.items()])
            self._expect(",")

    def end(self) -> None:
        """Raise ConfigError if there are words left."""
        if self._peek():
            raise self._wrong(f"{self._peek()!r} is too much")

    def _decimal(self) -> DecimalType:
        """Read precision and scale of a decimal, (10, 0) if they are not given."""
        digits = [10, 0]
        if self._peek() == "(":
            self._next()
            digits = [self._number(), 0]
            if self._peek() == ",":
                self._next()
                digits[1] = self._number()
            self._expect(")")
        if not 0 <= digits[1] <= digits[0] <= _DECIMAL_DIGITS_MAX or not digits[0]:
            raise self._wrong(f"decimal({digits[0]},{digits[1]}) can't be")
        return DecimalType(*digits)

    def _remarks(self) -> None:
        """Skip NOT NULL and a comment, which say nothing of what can be read."""
        if self._peek().lower() == "not":
            self._next()
            self._expect("null")
        if self._peek().lower() == "comment":
            self._next()
            self._next()

    def _number(self) -> int:
        """Read a whole number."""
        word = self._next()
        if not word.isdecimal():
            raise self._wrong(f"a number was to come, not {word!r}")
        return int(word)

    def _peek(self) -> str:
        """Return the next word without reading it, or an empty text at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self) -> str:
        """Read a word, or raise ConfigError at the end."""
        word = self._peek()
        if not word:
            raise self._wrong("it ends too early")
        self._at += 1
        return word

    def _expect(self, wanted: str) -> None:
        """Read a word, and raise ConfigError if it is another one than `wanted`."""
        found = self._next()
        if found.lower() != wanted:
            raise self._wrong(f"{wanted!r} was to come, not {found!r}")

    def _wrong(self, what: str) -> ConfigError:
        """Return a ConfigError that quotes the text and says what is wrong with it."""
        return ConfigError(
            f"{self._text!r} is no schema: {what}. Give a Spark type, or fields as "
            "'id BIGINT, tags ARRAY<STRING>'"
        )
