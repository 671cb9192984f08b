"""Encode and decode signed varints, as the records in a batch use them.

The form is zigzag, seven bits a byte, low bits first. Batches of the broker's internal topics are
opened to their records, and one that a client produced if a client asks for an offset by time: its
bytes may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

NextPosition: TypeAlias = int  # of the byte after what was read


def _encode_varint(value: int) -> bytes:
    """Encode an integer of up to 64 bits in zigzag form."""
    out = bytearray()
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


class _Varints(dict[int, bytes]):
    """Maps integers to their varints; a missing one is encoded, and not kept."""

    def __missing__(self, value: int) -> bytes:
        return _encode_varint(value)


# Maps any value to its bytes. The lengths and deltas of the broker's own records are precomputed.
VARINT: Mapping[int, bytes] = _Varints((value, _encode_varint(value)) for value in range(-1, 1_024))


def read_varint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, NextPosition]:
    """Decode the varint at a position; return its value and the position after it.

    Raises: ValueError if it has no end within 64 bits, IndexError if the data has none.
    """
    byte = data[position]
    position += 1
    rest = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > 63:
            raise ValueError("a varint of more than 10 bytes")
        byte = data[position]
        position += 1
        rest |= (byte & 0x7F) << shift
        shift += 7
    return (rest >> 1) ^ -(rest & 1), position
