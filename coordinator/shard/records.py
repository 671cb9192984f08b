"""The bytes of Kafka's schemas: the few primitives that coordinator records are made of.

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
    """Appends fields; `flexible` chooses the encoding of lengths."""

    def __init__(self, version: int, *, flexible: bool = False) -> None:
        self._buffer = bytearray(struct.pack(">h", version))
        self._flexible = flexible

    @classmethod
    def of_field(cls) -> Writer:
        """For the bytes of one tagged field: flexible, and without a version before them."""
        writer = cls(0, flexible=True)
        writer._buffer.clear()
        return writer

    @classmethod
    def bare(cls) -> Writer:
        """For bytes that have no version before them: the user data of an assignor."""
        writer = cls(0)
        writer._buffer.clear()
        return writer

    def done(self) -> bytes:
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
        """Several fields of fixed size at once, as in `struct`."""
        self._buffer += struct.pack(layout, *values)

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self._buffer.append(value & 0x7F | 0x80)
            value >>= 7
        self._buffer.append(value)

    def string(self, value: str | None) -> None:
        encoded = None if value is None else value.encode()
        self._length(">h", encoded)
        self._buffer += encoded or b""

    def blob(self, value: bytes | None) -> None:
        self._length(">i", value)
        self._buffer += value or b""

    def fixed_bytes(self, value: bytes) -> None:
        """Bytes of a size that the schema gives, like those of a topic id."""
        self._buffer += value

    def strings(self, values: Sequence[str]) -> None:
        self.array(len(values))
        for value in values:
            self.string(value)

    def int32s(self, values: Sequence[int]) -> None:
        self.array(len(values))
        self._buffer += struct.pack(f">{len(values)}i", *values)

    def array(self, count: int | None) -> None:
        """The length of an array; its elements follow. None: a null array."""
        if self._flexible:
            self.uvarint(0 if count is None else count + 1)
        else:
            self.int32(-1 if count is None else count)

    def tags(self, tagged: dict[int, bytes] | None = None) -> None:
        """The tagged fields that end a struct: nothing at all in a version that isn't flexible."""
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
    """The value is of a version that only a newer broker knows. It is no damage."""

    def __init__(self, version: int) -> None:
        super().__init__(f"value version {version}")
        self.version = version


class Reader:
    """Reads what Writer wrote. Raises ValueError at an early end or a null that can't be."""

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise ValueError("no bytes at all")
        self._data = data
        self._at = 0
        self.flexible = False

    @classmethod
    def of_field(cls, data: bytes) -> Reader:
        """Of the bytes of one tagged field."""
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
        at = self._at
        if at >= len(self._data):
            raise self._ends_early()
        self._at = at + 1
        return self._data[at]

    def nullable_string(self) -> str | None:
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self._take(length).decode()

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise ValueError("null where the schema wants a string")
        return value

    def nullable_blob(self) -> bytes | None:
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return None if length < 0 else self._take(length)

    def blob(self) -> bytes:
        value = self.nullable_blob()
        if value is None:
            raise ValueError("null where the schema wants bytes")
        return value

    def fixed_bytes(self, size: int) -> bytes:
        """Bytes of a size that the schema gives, like those of a topic id."""
        return self._take(size)

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.array()))

    def int32s(self) -> tuple[int, ...]:
        count = self.array()
        return struct.unpack(f">{count}i", self._take(4 * count))

    def array(self) -> int:
        """The number of elements that follow; a null array counts as empty."""
        return max(0, self.uvarint() - 1 if self.flexible else self.int32())

    def tags(self) -> dict[int, bytes]:
        if not self.flexible:
            return {}
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}

    def fixed(self, layout: str) -> tuple[Any, ...]:
        """Several fields of fixed size at once, as in `struct`."""
        return struct.unpack(layout, self._take(struct.calcsize(layout)))

    def _take(self, count: int) -> bytes:
        at = self._at
        self._at = end = at + count
        if end > len(self._data):
            self._at = at
            raise self._ends_early()
        return self._data[at:end]

    def _unpack(self, layout: str, size: int) -> int:
        at = self._at
        if at + size > len(self._data):
            raise self._ends_early()
        self._at = at + size
        value: int = struct.unpack_from(layout, self._data, at)[0]
        return value

    def _ends_early(self) -> ValueError:
        return ValueError(f"{len(self._data)} bytes end before the field at {self._at}")


def value_reader(value: bytes, *, newest: int, first_flexible: int) -> tuple[Reader, int]:
    """A reader past the version prefix of a value, and that version.

    Raises UnknownVersion for any but 0 to `newest`.
    """
    reader = Reader(value)
    version = reader.int16()
    if not 0 <= version <= newest:
        raise UnknownVersion(version)
    reader.flexible = version >= first_flexible
    return reader, version
