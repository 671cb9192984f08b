"""Map a group or a transactional id to its partition of the internal topic, by Kafka's rule.

That is Java's `String.hashCode` over UTF-16 code units, its absolute value (0 for the one int that
has none), modulo the number of partitions.
"""

from __future__ import annotations

import struct
from functools import lru_cache


@lru_cache(maxsize=16_384)  # An assignor sorts all members of a group by it, again and again.
def java_hash(text: str) -> int:
    """Return Java's `String.hashCode` of a text as an unsigned 32-bit integer."""
    code = 0
    for unit in text.encode() if text.isascii() else _utf16_units(text):
        code = (code * 31 + unit) & 0xFFFFFFFF
    return code


def _utf16_units(text: str) -> tuple[int, ...]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(encoded) // 2}H", encoded)


@lru_cache(maxsize=4_096)  # Every request asks, mostly for the same few names.
def partition_for(name: str, partition_count: int) -> int:
    """Return the partition of the internal topic that a group or transactional id lives in.

    Kafka's counterpart is `partitionFor` of its group and transaction coordinators.
    """
    code = java_hash(name)
    if code >= 0x80000000:
        code = 0 if code == 0x80000000 else 0x100000000 - code
    return code % partition_count
