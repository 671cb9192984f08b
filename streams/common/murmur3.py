"""Hash bytes by Murmur3 (128 bits, x64), by which a foreign-key join knows a current row.

A subscription carries the hash of its row; a response counts only if the row's hash is still the
same. The seed and the byte order are Kafka Streams' (`Murmur3.hash128`), since the hash goes
through topics. Rules: Austin Appleby's MurmurHash3_x64_128, which is in the public domain.

In Python each operation on a number costs about as much, whether the number has 8 bytes or 100. So
the halves of all blocks are mixed at once: the data is one number of lanes of 128 bits, a lane for
each block, and in each lane a half of 64 bits has room for its product with another 64 bits. Many
rows are hashed at once in the same way, with a lane for each row.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from streams.common.bounded_cache import RecentResults

LowerHalves: TypeAlias = int
UpperHalves: TypeAlias = int

_SEED = 104729
_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK_BYTES = _HASH_BYTES = 16
_ROWS_TOGETHER_MIN = 4
"""The number of rows from which on it takes less time to hash them together."""
_REMEMBERED_BYTES_MAX = 8 << 20
"""Rows of a process: each is hashed when it subscribes, and again at its response, which comes when
the subscription and then the response are committed. Meanwhile thousands of others subscribe."""
_iter_halves = struct.Struct("<QQ").iter_unpack
_pack = struct.Struct(">QQ").pack


def murmur3_hash128(data: bytes) -> bytes:
    """Return the 16-byte hash of `data`, remembered if it was computed recently."""
    found = _find_recent(data)
    if found is None:
        found = compute_hash128(data)
        _recent_hashes.add_result(data, found)
    return found


def remember_hashes(rows: Iterable[bytes]) -> None:
    """Compute the hashes of many rows together, for calls of `murmur3_hash128` that follow.

    Rows that would gain nothing by it are left to those calls: large ones, and those of which only
    a few have about the same size.
    """
    rows_by_size: defaultdict[int, list[bytes]] = defaultdict(list)
    for row in set(rows):
        if len(row) <= _LANES_BYTES and _find_recent(row) is None:
            rows_by_size[len(row) // _BLOCK_BYTES].append(row)
    for whole_blocks, alike in rows_by_size.items():
        if len(alike) >= _ROWS_TOGETHER_MIN:
            for row, row_hash in zip(alike, compute_hashes(alike, whole_blocks), strict=True):
                _recent_hashes.add_result(row, row_hash)


def compute_hash128(data: bytes) -> bytes:
    """Compute the 16-byte hash of `data`."""
    size = len(data)
    whole = size - size % _BLOCK_BYTES
    lanes = _LANES if size <= _LANES_BYTES else _create_lanes(size)
    k1s, k2s = _mix_blocks(int.from_bytes(data, "little"), lanes)
    mixed = (k2s << 64 | k1s).to_bytes(whole + _BLOCK_BYTES, "little")
    h1 = h2 = _SEED
    for k1, k2 in _iter_halves(mixed[:whole]):
        h1 ^= k1
        h1 = ((h1 << 27 | h1 >> 37) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= k2
        h2 = ((h2 << 31 | h2 >> 33) + h1) * 5 + 0x38495AB5 & _MASK
    # What is left above the whole blocks are the halves of the last bytes; 0 if there are none.
    h1 ^= (k1s >> 8 * whole) ^ size
    h2 ^= (k2s >> 8 * whole) ^ size
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _mix_final_bits(h1), _mix_final_bits(h2)
    h1 = h1 + h2 & _MASK
    return _pack(h1, h2 + h1 & _MASK)


def compute_hashes(rows: list[bytes], whole_blocks: int) -> list[bytes]:
    """Compute the hashes of rows that have the same number of whole blocks of 16 bytes.

    Each number has a lane for each row, the first row's at its lower end.
    """
    padded_bytes = (whole_blocks + 1) * _BLOCK_BYTES
    padded = b"".join([row.ljust(padded_bytes, b"\0") for row in rows])
    blocks_of_rows = struct.iter_unpack(f"{_BLOCK_BYTES}s" * (whole_blocks + 1), padded)
    ones = _repeat_in_lanes(1, len(rows))
    lanes = ones * _MASK
    h1s = h2s = ones * _SEED
    h1_addends, h2_addends = ones * 0x52DCE729, ones * 0x38495AB5
    *whole, last = (
        _mix_blocks(int.from_bytes(b"".join(blocks), "little"), lanes)
        for blocks in zip(*blocks_of_rows, strict=True)
    )
    for k1s, k2s in whole:
        h1s ^= k1s
        h1s = (((h1s << 27 | h1s >> 37) & lanes) + h2s) * 5 + h1_addends & lanes
        h2s ^= k2s
        h2s = (((h2s << 31 | h2s >> 33) & lanes) + h1s) * 5 + h2_addends & lanes
    sizes = int.from_bytes(b"".join([len(row).to_bytes(16, "little") for row in rows]), "little")
    h1s ^= last[0] ^ sizes
    h2s ^= last[1] ^ sizes
    h1s = h1s + h2s & lanes
    h2s = h2s + h1s & lanes
    h1s, h2s = _mix_final_bits(h1s, lanes), _mix_final_bits(h2s, lanes)
    h1s = h1s + h2s & lanes
    h2s = h2s + h1s & lanes
    hashes = (h1s << 64 | h2s).to_bytes(len(rows) * _HASH_BYTES, "big")
    # Big-endian, so the last row's lane comes first.
    starts = range(len(hashes) - _HASH_BYTES, -1, -_HASH_BYTES)
    return [hashes[start : start + _HASH_BYTES] for start in starts]


def _mix_blocks(blocks: int, lanes: int) -> tuple[LowerHalves, UpperHalves]:
    """Return the lower halves of the blocks of all lanes mixed, and the upper halves mixed."""
    k1s = (blocks & lanes) * _C1 & lanes
    k1s = ((k1s << 31 | k1s >> 33) & lanes) * _C2 & lanes
    k2s = (blocks >> 64 & lanes) * _C2 & lanes
    k2s = ((k2s << 33 | k2s >> 31) & lanes) * _C1 & lanes
    return k1s, k2s


def _mix_final_bits(h: int, lanes: int = _MASK) -> int:
    """Mix the bits of a 64-bit number so that each one affects all (fmix64).

    With `lanes`, `h` holds a number in each lane, and each is mixed by itself.
    """
    h = (h ^ h >> 33 & lanes) * 0xFF51AFD7ED558CCD & lanes
    h = (h ^ h >> 33 & lanes) * 0xC4CEB9FE1A85EC53 & lanes
    return h ^ h >> 33 & lanes


def _create_lanes(size: int) -> int:
    """Return the number with the lower 64 bits of each lane set, for `size` bytes of data."""
    return _repeat_in_lanes(_MASK, size // _BLOCK_BYTES + 1)


def _repeat_in_lanes(number: int, count: int) -> int:
    """Return the number that has `number` in each of `count` lanes."""
    return int.from_bytes(number.to_bytes(_BLOCK_BYTES, "little") * count, "little")


_LANES_BYTES = 1_024
_LANES = _create_lanes(_LANES_BYTES)
_recent_hashes = RecentResults(_REMEMBERED_BYTES_MAX)
_find_recent = _recent_hashes.find_result
