"""Frame records of one size as they stand in a batch, for codecs that encode many by one call.

A record is its head, its key, what is between key and value, its value, and RECORD_END.
"""

from __future__ import annotations

from typing import TypeAlias

from coordinator.log.varint import VARINT

RecordHead: TypeAlias = bytes
BytesBeforeValue: TypeAlias = bytes  # those after the key: the length of the value

RECORD_END = b"\0"  # no headers


def build_equal_record_frames(
    record_count: int, key_bytes: int, value_bytes: int
) -> tuple[list[RecordHead], BytesBeforeValue]:
    """Return the head of each record, and the bytes between the key and the value of every one."""
    between = VARINT[value_bytes]
    heads = []
    for delta in range(record_count):
        # Attributes, timestamp delta 0, offset delta, and the length of the key.
        fields = b"\0\0" + VARINT[delta] + VARINT[key_bytes]
        size = len(fields) + key_bytes + len(between) + value_bytes + len(RECORD_END)
        heads.append(VARINT[size] + fields)
    return heads, between
