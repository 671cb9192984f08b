"""Change bytes in ways that tend to hurt: limits of lengths and counts, pieces gone or doubled.

All chance comes from the `Random` that is given: hypothesis' own, which it can shrink, or one made
from a seed that is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

# The limits of each width, varints without end, zigzag limits, null lengths.
_TELLING = (
    b"\0",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\x7f\xff",
    b"\x80\x00",
    b"\xff\xff",
    b"\x00\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x00\x01\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x00",
    b"\x7f" + b"\xff" * 7,
    b"\x80" + b"\x00" * 7,
    b"\xff" * 8,
    b"\xff" * 9 + b"\x01",
    b"\xff" * 12,
)
_COUNTS = (1, 1, 1, 2, 4)  # of changes: one that leaves the rest whole gets furthest
_PIECE_BYTES_MAX = 40


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return the data after one change or some; `others` lend pieces."""
    for _ in range(random.choice(_COUNTS)):
        data = random.choice(_MUTATIONS)(data, others, random)
    return data


def _position(data: bytes, random: Random) -> int:
    return random.randint(0, len(data))


def _overwrite(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at, piece = _position(data, random), random.choice(_TELLING)
    return data[:at] + piece + data[at + len(piece) :]


def _insert(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = _position(data, random)
    return data[:at] + random.choice(_TELLING) + data[at:]


def _flip(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    if not data:
        return data
    at = random.randint(0, len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1 << random.randint(0, 7)]) + data[at + 1 :]


def _truncate(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    return data[: _position(data, random)]


def _remove(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = _position(data, random)
    return data[:at] + data[at + random.randint(1, _PIECE_BYTES_MAX) :]


def _double(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = _position(data, random)
    piece = data[at : at + random.randint(1, _PIECE_BYTES_MAX)]
    return data[:at] + piece * random.randint(2, 4) + data[at + len(piece) :]


def _splice(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    other = random.choice(others)
    return data[: _position(data, random)] + other[_position(other, random) :]


def _noise(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    noise = bytes([random.randint(0, 255) for _ in range(random.randint(1, _PIECE_BYTES_MAX))])
    return data[: _position(data, random)] + noise


_MUTATIONS: Sequence[Callable[[bytes, Sequence[bytes], Random], bytes]] = (
    _overwrite,
    _overwrite,  # the one that finds most
    _insert,
    _flip,
    _truncate,
    _remove,
    _double,
    _splice,
    _noise,
)
