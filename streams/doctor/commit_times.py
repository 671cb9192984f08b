"""Decode when groups have committed offsets, out of records of `__consumer_offsets`.

No request tells when an offset was committed. The records that brokers keep do: OffsetCommitKey
(versions 0 and 1) and OffsetCommitValue (0 to 4) of Kafka 4.4.
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple, TypeAlias

from streams.common.topic_partitions import Partition

GroupId: TypeAlias = str

_SHORT, _INT, _LONG = Struct(">h"), Struct(">i"), Struct(">q")
_OFFSET_KEYS = (0, 1)
_WITH_LEADER_EPOCH, _FLEXIBLE, _VERSION_MAX = 3, 4, 4
_MASK = 0xFFFF_FFFF


class OffsetCommit(NamedTuple):
    """Holds an offset that a group has committed, and when its coordinator noted that."""

    group: str
    partition: Partition
    offset: int
    committed_at_ms: int


def choose_offsets_partition(group: str, partition_count: int) -> int:
    """Return the partition of `__consumer_offsets` that has a group's records.

    It is that of Kafka's `partitionFor`: Java's hash of the text, without its sign.
    """
    code = 0
    text = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(text), 2):
        code = (code * 31 + int.from_bytes(text[at : at + 2], "big")) & _MASK
    if code > _MASK // 2:
        code = (_MASK + 1 - code) & (_MASK // 2)
    return code % partition_count


def decode_committed_partition(key: bytes | None) -> tuple[GroupId, Partition] | None:
    """Return the group and the partition that a record of an offset is of; None for another one."""
    try:
        fields = _CommitFields(key or b"")
        if fields.read_number(_SHORT) not in _OFFSET_KEYS:
            return None
        group, topic = fields.read_text(), fields.read_text()
        return group, Partition(topic, fields.read_number(_INT))
    except (error, IndexError, UnicodeDecodeError):
        return None


def decode_offset_commit(key: bytes | None, value: bytes | None) -> OffsetCommit | None:
    """Return the commit of a record; None for tombstones, other records and unknown versions."""
    place = decode_committed_partition(key)
    if place is None or value is None:
        return None
    try:
        fields = _CommitFields(value)
        version = fields.read_number(_SHORT)
        if not 0 <= version <= _VERSION_MAX:
            return None
        offset = fields.read_number(_LONG)
        if version >= _WITH_LEADER_EPOCH:
            fields.read_number(_INT)
        if version >= _FLEXIBLE:
            fields.read_compact_text()
        else:
            fields.read_text()
        return OffsetCommit(*place, offset, fields.read_number(_LONG))
    except (error, IndexError, UnicodeDecodeError):
        return None


class _CommitFields:
    """Reads the fields of a record one after the other, in Kafka's encoding."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read_number(self, kind: Struct) -> int:
        (number,) = kind.unpack_from(self._data, self._at)
        self._at += kind.size
        return int(number)

    def read_text(self) -> str:
        """Read a text behind its length of two bytes; one that is null is empty."""
        return self._take_text(max(self.read_number(_SHORT), 0))

    def read_compact_text(self) -> str:
        """Read a text behind its length and one, as a varint; 0 is null."""
        length, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return self._take_text(max(length - 1, 0))
            shift += 7

    def _take_text(self, size: int) -> str:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise IndexError(size)
        self._at += size
        return found.decode()
