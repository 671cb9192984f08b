"""Kafka's hash of a key, by which records find their partition (its clients' Utils.murmur2)."""

from __future__ import annotations

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, count: int) -> int:
    """Which of `count` partitions a key goes to, unless somebody says otherwise."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """32 bits, unsigned."""
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    tail = data[whole:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
