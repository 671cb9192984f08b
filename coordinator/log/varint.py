"""Signed varints, as the records in a batch use them: zigzag, seven bits a byte, low bits first.

Only batches that the broker itself writes or reads (those of its internal topics) are opened to
their records; what clients produce stays opaque and never comes here.
"""

from __future__ import annotations


def write_varint(out: bytearray, value: int) -> None:
    """Append `value` in zigzag form; any width up to 64 bits."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def read_varint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """The value at position `at`, and the position after it."""
    byte = data[at]
    at += 1
    rest = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[at]
        at += 1
        rest |= (byte & 0x7F) << shift
        shift += 7
    return (rest >> 1) ^ -(rest & 1), at
