"""Murmur3 of 128 bits (x64), by which a foreign-key join tells whether a row is still current.

A subscription carries the hash of its row; a response counts only if the row's hash is still the
same. The seed and the byte order are Kafka Streams' (`Murmur3.hash128`), since the hash goes
through topics. Rules: Austin Appleby's MurmurHash3_x64_128, which is in the public domain.

In Python each operation on a number costs about as much, whether the number has 8 bytes or 100. So
the halves of all blocks are mixed at once: the data is one number of lanes of 128 bits, a lane for
each block, and in each lane a half of 64 bits has room for its product with another 64 bits.
"""

from __future__ import annotations

import struct

from streams.common.bounded_cache import remember_recent

_SEED = 104729
_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK_BYTES = 16
_REMEMBERED_BYTES_MAX = 4 << 20
"""Rows of a process: each is hashed when it subscribes, and again at its response, which comes when
the subscription and then the response are committed. Meanwhile thousands of others subscribe."""
_iter_halves = struct.Struct("<QQ").iter_unpack
_pack = struct.Struct(">QQ").pack


def murmur3_hash128(data: bytes) -> bytes:
    """Return the 16-byte hash of `data`, remembered if it was computed recently."""
    return _find_or_compute_hash128(data)


def _compute_hash128(data: bytes) -> bytes:
    """Compute the 16-byte hash of `data`."""
    size = len(data)
    whole = size - size % _BLOCK_BYTES
    lanes = _LANES if size <= _LANES_BYTES else _create_lanes(size)
    blocks = int.from_bytes(data, "little")
    k1s = (blocks & lanes) * _C1 & lanes
    k1s = ((k1s << 31 | k1s >> 33) & lanes) * _C2 & lanes
    k2s = (blocks >> 64 & lanes) * _C2 & lanes
    k2s = ((k2s << 33 | k2s >> 31) & lanes) * _C1 & lanes
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


def _mix_final_bits(h: int) -> int:
    """Mix the bits of 64-bit `h` so that each one affects all (fmix64)."""
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33


def _create_lanes(size: int) -> int:
    """Return the number with the lower 64 bits of each lane set, for `size` bytes of data."""
    lane = _MASK.to_bytes(_BLOCK_BYTES, "little")
    return int.from_bytes(lane * (size // _BLOCK_BYTES + 1), "little")


_LANES_BYTES = 1_024
_LANES = _create_lanes(_LANES_BYTES)
_find_or_compute_hash128 = remember_recent(_compute_hash128, _REMEMBERED_BYTES_MAX)
