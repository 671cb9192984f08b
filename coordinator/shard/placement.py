"""Which shard a group or a transactional id belongs to: Kafka's own rule.

Java's `String.hashCode` over UTF-16 code units, its absolute value (0 for the one int that has
none), modulo the number of partitions.
"""

from __future__ import annotations

import struct
from functools import lru_cache


def java_hash(text: str) -> int:
    """String.hashCode, without a sign."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        code = (code * 31 + unit) & 0xFFFFFFFF
    return code


@lru_cache(maxsize=4_096)  # every request asks, most of them for the same few names
def shard_of(name: str, partitions: int) -> int:
    """The partition of the internal topic with `partitions` partitions that `name` lives in."""
    code = java_hash(name)
    if code >= 0x80000000:
        code = 0 if code == 0x80000000 else 0x100000000 - code
    return code % partitions
