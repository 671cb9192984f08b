"""Read the OffsetCommit that nearly every client sends, several times faster than kio reads any.

It is of partitions of one topic, without metadata and tagged fields, and its texts are short. Then
its partitions have one size, and one call unpacks them all. `read_plain_commit` reads exactly such
requests, with every length checked, and leaves all others to kio: a test compares the two.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

VERSIONS = range(8, 10)  # flexible, and with topics' names

_GENERATION_BYTES = 4
_PARTITION_BYTES = 18
_METADATA_AT, _TAGS_AT = 16, 17  # in a partition


class PlainCommitPartition(NamedTuple):
    """Represents a partition of a `PlainCommit`, with the fields of kio's."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str = ""


class PlainCommitTopic(NamedTuple):
    """Holds the topic of a `PlainCommit`, with its partitions as columns."""

    name: str
    partition_indexes: tuple[int, ...]
    offsets: tuple[int, ...]
    leader_epochs: tuple[int, ...]

    @property
    def partitions(self) -> tuple[PlainCommitPartition, ...]:
        """Return the partitions one by one."""
        columns = zip(self.partition_indexes, self.offsets, self.leader_epochs, strict=True)
        return tuple([PlainCommitPartition(*partition) for partition in columns])


class PlainCommit(NamedTuple):
    """Represents an OffsetCommit request for one topic, with the fields of kio's."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: tuple[PlainCommitTopic]


def read_plain_commit(frame: bytes, position: int) -> PlainCommit | None:
    """Read the request whose header has its tagged fields at `position`.

    None if it has to be read by kio.
    """
    try:
        at = position + 1
        at += frame[at] or 1  # the group id: a null text has a byte, too
        at += _GENERATION_BYTES
        at += frame[at] or 1  # the member id
        at += frame[at] or 1  # the instance id
        at += 1  # the number of topics
        at += frame[at] or 1  # the topic's name
        head = _read_head(frame[position:at])
        columns = None if head is None else _read_partitions(frame, at)
    except IndexError:
        return None
    if head is None or columns is None:
        return None
    group_id, generation, member_id, instance_id, name = head
    topic = PlainCommitTopic(name, columns[0::3], columns[1::3], columns[2::3])
    return PlainCommit(group_id, generation, member_id, instance_id, (topic,))


@lru_cache(4_096)  # a member says the same again and again, with other offsets behind it
def _read_head(head: bytes) -> tuple[str, int, str, str | None, str] | None:
    """Read the group id, generation, member id, instance id and topic of a request.

    `head` is from the tagged fields of the header to the topic's name. None if the request has to
    be read by kio.
    """
    try:
        if head[0]:  # the header has tagged fields
            return None
        group_id, position = _read_text(head, 1)
        end = position + _GENERATION_BYTES
        generation = int.from_bytes(head[position:end], "big", signed=True)
        member_id, position = _read_text(head, end)
        instance_id, position = _read_text(head, position)
        if head[position] != 2:  # not one topic
            return None
        name, _ = _read_text(head, position + 1)
    except (IndexError, UnicodeDecodeError):
        return None
    if group_id is None or member_id is None or name is None:
        return None
    return group_id, generation, member_id, instance_id, name


def _read_text(head: bytes, position: int) -> tuple[str | None, int]:
    """Read a compact string; return the position behind it, too, which may be behind the head.

    Raises: IndexError for one that is too long to be read here.
    """
    length = head[position]
    if length == 0:
        return None, position + 1
    end = position + length
    if length >= 0x80:
        raise IndexError(f"a length of several bytes at {position}")
    return head[position + 1 : end].decode(), end


def _read_partitions(frame: bytes, position: int) -> tuple[int, ...] | None:
    """Read the array of partitions, which ends the request but for the tags of two structs.

    Return partition, offset and leader epoch of each in turn.
    """
    count = frame[position] - 1
    rest = frame[position + 1 :]
    if (
        not 0 < count < 0x7F
        or len(rest) != count * _PARTITION_BYTES + 2
        or rest[_METADATA_AT::_PARTITION_BYTES].strip(b"\0\1")  # null or empty
        or rest[_TAGS_AT::_PARTITION_BYTES].strip(b"\0")
        or rest[-2:] != b"\0\0"
    ):
        return None
    return _partition_struct(count).unpack_from(rest)


@lru_cache(128)
def _partition_struct(count: int) -> Struct:
    return Struct(">" + "iqi2x" * count)
