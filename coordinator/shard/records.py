"""Write and read the primitive fields of Kafka's message schemas, for coordinator records.

A key or value starts with an int16 (the record's type or its version), then fields in order. In a
flexible version lengths are unsigned varints of length + 1 and each struct ends with its tagged
fields; otherwise strings have an int16 length, arrays and bytes an int32 one.
Source: Kafka's message schemas (`common/message/*.json` of its coordinators).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any


class Writer:
    """Appends fields to a buffer of bytes; `flexible` chooses the encoding of lengths."""

    def __init__(self, version: int, *, flexible: bool = False) -> None:
        self._buffer = bytearray(struct.pack(">h", version))
        self._flexible = flexible

    @classmethod
    def of_field(cls) -> Writer:
        """Create a writer for the bytes of one tagged field: flexible, without a version."""
        writer = cls(0, flexible=True)
        writer._buffer.clear()
        return writer

    @classmethod
    def bare(cls) -> Writer:
        """Create a writer for bytes without a version, such as an assignor's user data."""
        writer = cls(0)
        writer._buffer.clear()
        return writer

    def done(self) -> bytes:
        """Return all bytes that have been written."""
        return bytes(self._buffer)

    def int8(self, value: int) -> None:
        self._buffer += struct.pack(">b", value)

    def int16(self, value: int) -> None:
        self._buffer += struct.pack(">h", value)

    def int32(self, value: int) -> None:
        self._buffer += struct.pack(">i", value)

    def int64(self, value: int) -> None:
        self._buffer += struct.pack(">q", value)

    def fixed(self, layout: str, *values: int) -> None:
        """Append several numbers of fixed size; `layout` is a format of Python's `struct`."""
        self._buffer += struct.pack(layout, *values)

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self._buffer.append(value & 0x7F | 0x80)
            value >>= 7
        self._buffer.append(value)

    def string(self, value: str | None) -> None:
        """Append a string with its length before it; None is written as null."""
        encoded = None if value is None else value.encode()
        self._length(">h", encoded)
        self._buffer += encoded or b""

    def blob(self, value: bytes | None) -> None:
        """Append bytes with their length before them; None is written as null."""
        self._length(">i", value)
        self._buffer += value or b""

    def fixed_bytes(self, value: bytes) -> None:
        """Append bytes without a length, whose size the schema gives, such as a topic id."""
        self._buffer += value

    def strings(self, values: Sequence[str]) -> None:
        self.array(len(values))
        for value in values:
            self.string(value)

    def int32s(self, values: Sequence[int]) -> None:
        self.array(len(values))
        self._buffer += struct.pack(f">{len(values)}i", *values)

    def array(self, count: int | None) -> None:
        """Append the length of an array whose elements follow; None is a null array."""
        if self._flexible:
            self.uvarint(0 if count is None else count + 1)
        else:
            self.int32(-1 if count is None else count)

    def tags(self, tagged: dict[int, bytes] | None = None) -> None:
        """Append the tagged fields that end a struct, if the version is flexible."""
        if not self._flexible:
            return
        self.uvarint(len(tagged or {}))
        for tag, value in sorted((tagged or {}).items()):
            self.uvarint(tag)
            self.uvarint(len(value))
            self._buffer += value

    def _length(self, fixed: str, value: bytes | None) -> None:
        if self._flexible:
            self.uvarint(0 if value is None else len(value) + 1)
        else:
            self._buffer += struct.pack(fixed, -1 if value is None else len(value))


class UnknownVersion(Exception):
    """Raised for a value of a version that only a newer broker knows; it is not damage."""

    def __init__(self, version: int) -> None:
        super().__init__(f"value version {version}")
        self.version = version


class Reader:
    """Reads what a `FieldWriter` wrote.

    Raises ValueError at an early end, or at a null where the schema has none.
    """

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise ValueError("no bytes at all")
        self._data = data
        self._at = 0
        self.flexible = False

    @classmethod
    def of_field(cls, data: bytes) -> Reader:
        """Create a reader of the bytes of one tagged field."""
        reader = cls(data)
        reader.flexible = True
        return reader

    def int8(self) -> int:
        return self._unpack(">b", 1)

    def int16(self) -> int:
        return self._unpack(">h", 2)

    def int32(self) -> int:
        return self._unpack(">i", 4)

    def int64(self) -> int:
        return self._unpack(">q", 8)

    def uvarint(self) -> int:
        byte = self.uint8()
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            byte = self.uint8()
            value |= (byte & 0x7F) << shift
            shift += 7
        return value

    def uint8(self) -> int:
        position = self._at
        if position >= len(self._data):
            raise self._ends_early()
        self._at = position + 1
        return self._data[position]

    def nullable_string(self) -> str | None:
        """Read a string with its length before it; null becomes None."""
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self._take(length).decode()

    def string(self) -> str:
        """Read a string; raise ValueError if it is null."""
        value = self.nullable_string()
        if value is None:
            raise ValueError("null where the schema wants a string")
        return value

    def nullable_blob(self) -> bytes | None:
        """Read bytes with their length before them; null becomes None."""
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return None if length < 0 else self._take(length)

    def blob(self) -> bytes:
        """Read bytes with their length before them; raise ValueError if they are null."""
        value = self.nullable_blob()
        if value is None:
            raise ValueError("null where the schema wants bytes")
        return value

    def fixed_bytes(self, size: int) -> bytes:
        """Read bytes whose size the schema gives, such as those of a topic id."""
        return self._take(size)

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.array()))

    def int32s(self) -> tuple[int, ...]:
        count = self.array()
        return struct.unpack(f">{count}i", self._take(4 * count))

    def array(self) -> int:
        """Read the number of elements of an array that follow; a null array counts as empty."""
        return max(0, self.uvarint() - 1 if self.flexible else self.int32())

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields that end a struct, as bytes by tag.

        There are none in a version that isn't flexible.
        """
        if not self.flexible:
            return {}
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}

    def fixed(self, layout: str) -> tuple[Any, ...]:
        """Read several numbers of fixed size at once; `layout` is a format of Python's `struct`."""
        return struct.unpack(layout, self._take(struct.calcsize(layout)))

    def _take(self, count: int) -> bytes:
        start = self._at
        self._at = end = start + count
        if end > len(self._data):
            self._at = start
            raise self._ends_early()
        return self._data[start:end]

    def _unpack(self, layout: str, size: int) -> int:
        start = self._at
        if start + size > len(self._data):
            raise self._ends_early()
        self._at = start + size
        value: int = struct.unpack_from(layout, self._data, start)[0]
        return value

    def _ends_early(self) -> ValueError:
        return ValueError(f"{len(self._data)} bytes end before the field at {self._at}")


def value_reader(value: bytes, *, newest: int, first_flexible: int) -> tuple[Reader, int]:
    """Read the version before a record's value; return a reader of its fields and the version.

    Raises `UnknownRecordVersion` for any version but 0 to `newest_version`.
    """
    reader = Reader(value)
    version = reader.int16()
    if not 0 <= version <= newest:
        raise UnknownVersion(version)
    reader.flexible = version >= first_flexible
    return reader, version
