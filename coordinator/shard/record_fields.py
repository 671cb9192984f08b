"""Write and read the primitive fields of Kafka's message schemas, for coordinator records.

A key or value starts with an int16 (the record's type or its version), then fields in order. In a
flexible version lengths are unsigned varints of length + 1 and each struct ends with its tagged
fields; otherwise strings have an int16 length, arrays and bytes an int32 one.
Source: Kafka's message schemas (`common/message/*.json` of its coordinators).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

EncodedKey: TypeAlias = bytes
EncodedValue: TypeAlias = bytes | None  # None: a tombstone
Version: TypeAlias = int

_INT8, _INT16, _INT32, _INT64 = map(struct.Struct, (">b", ">h", ">i", ">q"))


class FieldWriter:
    """Appends fields to a buffer of bytes; `flexible` chooses the encoding of lengths."""

    def __init__(self, version: int, *, flexible: bool = False) -> None:
        self._buffer = bytearray(struct.pack(">h", version))
        self._is_flexible = flexible

    @classmethod
    def for_tagged_field(cls) -> FieldWriter:
        """Create a writer for the bytes of one tagged field: flexible, without a version."""
        writer = cls(0, flexible=True)
        writer._buffer.clear()
        return writer

    @classmethod
    def without_version(cls) -> FieldWriter:
        """Create a writer for bytes without a version, such as an assignor's user data."""
        writer = cls(0)
        writer._buffer.clear()
        return writer

    def to_bytes(self) -> bytes:
        """Return all bytes that have been written."""
        return bytes(self._buffer)

    def write_int8(self, value: int) -> None:
        self._buffer += _INT8.pack(value)

    def write_int32(self, value: int) -> None:
        self._buffer += _INT32.pack(value)

    def write_int64(self, value: int) -> None:
        self._buffer += _INT64.pack(value)

    def write_packed(self, layout: str, *values: int) -> None:
        """Append several numbers of fixed size; `layout` is a format of Python's `struct`."""
        self._buffer += struct.pack(layout, *values)

    def write_uvarint(self, value: int) -> None:
        while value > 0x7F:
            self._buffer.append(value & 0x7F | 0x80)
            value >>= 7
        self._buffer.append(value)

    def write_nullable_string(self, value: str | None) -> None:
        """Append a string with its length before it; None is written as null."""
        encoded = None if value is None else value.encode()
        self._write_length(_INT16, encoded)
        self._buffer += encoded or b""

    def write_nullable_bytes(self, value: bytes | None) -> None:
        """Append bytes with their length before them; None is written as null."""
        self._write_length(_INT32, value)
        self._buffer += value or b""

    def write_raw_bytes(self, value: bytes) -> None:
        """Append bytes without a length, whose size the schema gives, such as a topic id."""
        self._buffer += value

    def write_string_array(self, values: Sequence[str]) -> None:
        self.write_array_length(len(values))
        for value in values:
            self.write_nullable_string(value)

    def write_int32_array(self, values: Sequence[int]) -> None:
        self.write_array_length(len(values))
        self._buffer += struct.pack(f">{len(values)}i", *values)

    def write_array_length(self, count: int | None) -> None:
        """Append the length of an array whose elements follow; None is a null array."""
        if self._is_flexible:
            self.write_uvarint(0 if count is None else count + 1)
        else:
            self.write_int32(-1 if count is None else count)

    def write_tagged_fields(self, value_by_tag: dict[int, bytes] | None = None) -> None:
        """Append the tagged fields that end a struct, if the version is flexible."""
        if not self._is_flexible:
            return
        self.write_uvarint(len(value_by_tag or {}))
        for tag, value in sorted((value_by_tag or {}).items()):
            self.write_uvarint(tag)
            self.write_uvarint(len(value))
            self._buffer += value

    def _write_length(self, layout: struct.Struct, value: bytes | None) -> None:
        if self._is_flexible:
            self.write_uvarint(0 if value is None else len(value) + 1)
        else:
            self._buffer += layout.pack(-1 if value is None else len(value))


class UnknownRecordVersion(Exception):
    """Signals a value of a version that only a newer broker knows; it is not damage."""

    def __init__(self, version: int) -> None:
        super().__init__(f"value version {version}")
        self.version = version


class FieldReader:
    """Reads the fields of a record from bytes that a `FieldWriter` wrote.

    Raises ValueError at an early end, or at a null where the schema has none.
    """

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise ValueError("no bytes at all")
        self._data = data
        self._position = 0
        self.is_flexible = False

    @classmethod
    def for_tagged_field(cls, data: bytes) -> FieldReader:
        """Create a reader of the bytes of one tagged field."""
        reader = cls(data)
        reader.is_flexible = True
        return reader

    def read_int8(self) -> int:
        return self._read_number(_INT8)

    def read_int16(self) -> int:
        return self._read_number(_INT16)

    def read_int32(self) -> int:
        return self._read_number(_INT32)

    def read_int64(self) -> int:
        return self._read_number(_INT64)

    def read_uvarint(self) -> int:
        byte = self.read_uint8()
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            byte = self.read_uint8()
            value |= (byte & 0x7F) << shift
            shift += 7
        return value

    def read_uint8(self) -> int:
        position = self._position
        if position >= len(self._data):
            raise self._create_early_end_error()
        self._position = position + 1
        return self._data[position]

    def read_nullable_string(self) -> str | None:
        """Read a string with its length before it; null becomes None."""
        length = self.read_uvarint() - 1 if self.is_flexible else self._read_number(_INT16)
        return None if length < 0 else self._read_bytes_of_size(length).decode()

    def read_string(self) -> str:
        """Read a string; raise ValueError if it is null."""
        value = self.read_nullable_string()
        if value is None:
            raise ValueError("null where the schema wants a string")
        return value

    def read_nullable_bytes(self) -> bytes | None:
        """Read bytes with their length before them; null becomes None."""
        length = self.read_uvarint() - 1 if self.is_flexible else self._read_number(_INT32)
        return None if length < 0 else self._read_bytes_of_size(length)

    def read_byte_field(self) -> bytes:
        """Read bytes with their length before them; raise ValueError if they are null."""
        value = self.read_nullable_bytes()
        if value is None:
            raise ValueError("null where the schema wants bytes")
        return value

    def read_raw_bytes(self, size: int) -> bytes:
        """Read bytes whose size the schema gives, such as those of a topic id."""
        return self._read_bytes_of_size(size)

    def read_string_array(self) -> tuple[str, ...]:
        return tuple(self.read_string() for _ in range(self.read_array_length()))

    def read_int32_array(self) -> tuple[int, ...]:
        count = self.read_array_length()
        return struct.unpack(f">{count}i", self._read_bytes_of_size(4 * count))

    def read_array_length(self) -> int:
        """Read the number of elements of an array that follow; a null array counts as empty."""
        return max(0, self.read_uvarint() - 1 if self.is_flexible else self.read_int32())

    def read_tagged_fields(self) -> dict[int, bytes]:
        """Read the tagged fields that end a struct, as bytes by tag.

        There are none in a version that isn't flexible.
        """
        if not self.is_flexible:
            return {}
        return {
            self.read_uvarint(): self._read_bytes_of_size(self.read_uvarint())
            for _ in range(self.read_uvarint())
        }

    def read_packed(self, layout: str) -> tuple[Any, ...]:
        """Read several numbers of fixed size at once; `layout` is a format of Python's `struct`."""
        return struct.unpack(layout, self._read_bytes_of_size(struct.calcsize(layout)))

    def _read_bytes_of_size(self, size: int) -> bytes:
        start = self._position
        self._position = end = start + size
        if end > len(self._data):
            self._position = start
            raise self._create_early_end_error()
        return self._data[start:end]

    def _read_number(self, layout: struct.Struct) -> int:
        start = self._position
        end = start + layout.size
        if end > len(self._data):
            raise self._create_early_end_error()
        self._position = end
        value: int = layout.unpack_from(self._data, start)[0]
        return value

    def _create_early_end_error(self) -> ValueError:
        return ValueError(f"{len(self._data)} bytes end before the field at {self._position}")


def open_value_reader(
    value: bytes, *, newest_version: int, first_flexible_version: int
) -> tuple[FieldReader, Version]:
    """Read the version before a record's value; return a reader of its fields and the version.

    Raises `UnknownRecordVersion` for any version but 0 to `newest_version`.
    """
    reader = FieldReader(value)
    version = reader.read_int16()
    if not 0 <= version <= newest_version:
        raise UnknownRecordVersion(version)
    reader.is_flexible = version >= first_flexible_version
    return reader, version
