"""Murmur3 of 128 bits (x64), by which a foreign-key join tells whether a row is still current.

A subscription carries the hash of its row; a response counts only if the row's hash is still the
same. The seed and the byte order are Kafka Streams' (`Murmur3.hash128`), since the hash goes
through topics. Rules: Austin Appleby's MurmurHash3_x64_128, which is in the public domain.
"""

from __future__ import annotations

import struct
from functools import lru_cache

_SEED = 104729
_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK_BYTES = 16
_CACHED_BYTES_MAX = 2_048
_pack = struct.Struct(">QQ").pack


def murmur3_hash128(data: bytes) -> bytes:
    """Return the 16-byte hash of `data`.

    Recent hashes of short data are cached: a row is hashed when it subscribes, and again at each
    response.
    """
    return _cached_hash128(data) if len(data) <= _CACHED_BYTES_MAX else _compute_hash128(data)


def _compute_hash128(data: bytes) -> bytes:
    """Compute the 16-byte hash of `data`, without the cache."""
    h1 = h2 = _SEED
    size = len(data)
    whole = size - size % _BLOCK_BYTES
    for k1, k2 in struct.iter_unpack("<QQ", data[:whole]):
        k1 = k1 * _C1 & _MASK
        k1 = (k1 << 31 | k1 >> 33) * _C2 & _MASK
        h1 ^= k1
        h1 = (((h1 << 27 | h1 >> 37) + h2) * 5 + 0x52DCE729) & _MASK
        k2 = k2 * _C2 & _MASK
        k2 = (k2 << 33 | k2 >> 31) * _C1 & _MASK
        h2 ^= k2
        h2 = (((h2 << 31 | h2 >> 33) + h1) * 5 + 0x38495AB5) & _MASK
    if whole < size:
        k1, k2 = struct.unpack("<QQ", data[whole:].ljust(_BLOCK_BYTES, b"\0"))
        k2 = k2 * _C2 & _MASK
        h2 ^= (k2 << 33 | k2 >> 31) * _C1 & _MASK
        k1 = k1 * _C1 & _MASK
        h1 ^= (k1 << 31 | k1 >> 33) * _C2 & _MASK
    h1 ^= size
    h2 ^= size
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _mix_final_bits(h1), _mix_final_bits(h2)
    h1 = (h1 + h2) & _MASK
    return _pack(h1, (h2 + h1) & _MASK)


def _mix_final_bits(h: int) -> int:
    """Mix the bits of 64-bit `h` so that each one affects all (fmix64)."""
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33


_cached_hash128 = lru_cache(maxsize=1_024)(_compute_hash128)
