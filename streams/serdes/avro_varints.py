"""Read the numbers of Avro's bytes, which are zigzag varints, and refuse those that are none.

fastavro takes a number of any length, and cuts it to 64 bits. Avro for Java refuses more than 10
bytes, and more than 5 for an int.
"""

from __future__ import annotations

from typing import TypeAlias

NextIndex: TypeAlias = int
DoubledNumber: TypeAlias = int
ElementCount: TypeAlias = int

_INT_BYTES_MAX, _LONG_BYTES_MAX = 5, 10
_INT_END, _LONG_END = 1 << 32, 1 << 64


class BadBytes(ValueError):
    """Reports bytes that can't be the value that the schema has at their place."""


def read_number(data: bytes, at: int) -> tuple[int, NextIndex]:
    """Return a number of 64 bits and the index after it; IndexError at the end of the bytes."""
    number, end = _read_unsigned(data, at, _LONG_BYTES_MAX)
    if number >= _LONG_END:
        raise BadBytes("a number has more than 64 bits")
    return (number >> 1) ^ -(number & 1), end


def skip_long(data: bytes, at: int) -> NextIndex:
    """Return the index after a long, without decoding it."""
    last = at + _LONG_BYTES_MAX - 1
    while data[at] > 127:
        at += 1
        if at >= last:
            return read_number(data, last - _LONG_BYTES_MAX + 1)[1]
    return at + 1


def skip_int(data: bytes, at: int) -> NextIndex:
    """Return the index after an int, of 32 bits."""
    number, end = _read_unsigned(data, at, _INT_BYTES_MAX)
    if number >= _INT_END:
        raise BadBytes("an int has more than 32 bits")
    return end


def skip_sized(data: bytes, at: int) -> NextIndex:
    """Return the index after text or bytes, which follow their length."""
    length, begin = read_number(data, at)
    if not 0 <= length <= len(data) - begin:
        raise BadBytes(f"a length of {length} bytes, of which {len(data) - begin} are there")
    return begin + length


def read_choice(data: bytes, at: int, count: int, what: str) -> tuple[DoubledNumber, NextIndex]:
    """Return twice the number of a symbol or branch, which is below `count`, and the end of it."""
    number, end = read_number(data, at)
    if not 0 <= number < count:
        raise BadBytes(f"number {number} of {count} {what}")
    return number << 1, end


def read_block(data: bytes, at: int) -> tuple[ElementCount, NextIndex]:
    """Return how many elements a block has, and the index where they begin.

    A negative number stands for as many elements, whose size in bytes follows. Java does not
    compare that size either.
    """
    count, begin = read_number(data, at)
    if count < 0:
        size, begin = read_number(data, begin)
        if size < 0:
            raise BadBytes(f"a block of {size} bytes")
    return abs(count), begin


def _read_unsigned(data: bytes, at: int, bytes_max: int) -> tuple[int, NextIndex]:
    number = 0
    for shift in range(0, 7 * bytes_max, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise BadBytes(f"a number has more than {bytes_max} bytes")
