"""Read the OffsetCommit that nearly every client sends, several times faster than kio reads any.

It is of existing partitions of one topic, without metadata and tagged fields, and its texts are
short. Then its partitions have one size, and one call unpacks them all. A member's requests begin
alike up to the partitions: that part is read once. Exactly such requests are read here, with every
length checked, and all others are left to kio: a test compares the two.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from coordinator.api.context import CreateContext, ReadFrame, Request, RequestContext
from coordinator.log.varint import NextPosition
from coordinator.offsets.commit import CommittingMember, OffsetColumns, OffsetCommitCommand

VERSIONS = range(8, 10)  # flexible, and with topics' names

_CLIENT_ID_AT = 8  # in a frame: its length, and its text
_GENERATION_BYTES = 4
_PARTITION_BYTES = 18
_METADATA_AT, _TAGS_AT = 16, 17  # in a partition


class PlainCommit(NamedTuple):
    """Represents an OffsetCommit request for existing partitions: none is refused alone."""

    command: OffsetCommitCommand
    committer: CommittingMember
    offsets: OffsetColumns  # those of the command


class _CommitHead(NamedTuple):
    """Holds the fields of an OffsetCommit's frame before the topic's name."""

    context: RequestContext
    group_id: str
    committer: CommittingMember
    topic: str


def create_frame_reader(read_any: ReadFrame, create_context: CreateContext) -> ReadFrame:
    """Return a function that reads the frames of a version in VERSIONS as `read_any` does.

    Those of most clients it reads faster, as `PlainCommit`.
    """

    @lru_cache(4_096)
    def read_head(head: bytes, client_host: str) -> _CommitHead | None:
        return _read_head(head, client_host, create_context)

    def read_frame(frame: bytes, client_host: str) -> tuple[Request, RequestContext]:
        try:
            if frame[_CLIENT_ID_AT]:  # no client id, or a long one
                return read_any(frame, client_host)
            at = _CLIENT_ID_AT + 2 + frame[_CLIENT_ID_AT + 1]
            at += 1  # the header's tagged fields: none
            at += frame[at] or 1  # the group id: a null text has a byte, too
            at += _GENERATION_BYTES
            at += frame[at] or 1  # the member id
            at += frame[at] or 1  # the instance id
            at += 1  # the number of topics
            at += frame[at] or 1  # the topic's name
            head = read_head(frame[_CLIENT_ID_AT:at], client_host)
            columns = None if head is None else _read_partitions(frame, at)
        except IndexError:
            return read_any(frame, client_host)
        if head is None or columns is None:
            return read_any(frame, client_host)
        context, group_id, committer, name = head
        partitions = columns[0::3]
        topic = context.services.topics.get(name)
        if topic is None or min(partitions) < 0 or max(partitions) >= len(topic.partitions):
            return read_any(frame, client_host)
        offsets = OffsetColumns(topic.name, topic.id, partitions, columns[1::3], columns[2::3])
        return PlainCommit(OffsetCommitCommand(group_id, offsets), committer, offsets), context

    return read_frame


def _read_head(head: bytes, client_host: str, create_context: CreateContext) -> _CommitHead | None:
    """Read the fields of an OffsetCommit's frame from the client id up to the topic's name.

    None if the request has to be read by kio.
    """
    try:
        end = 2 + head[1]
        client_id = head[2:end].decode()
        if head[end]:  # the header has tagged fields
            return None
        group_id, position = _read_text(head, end + 1)
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
    context = create_context(client_id, client_host)
    committer = CommittingMember(
        generation, member_id, instance_id, knows_epochs=context.version >= 9
    )
    return _CommitHead(context, group_id, committer, name)


def _read_text(head: bytes, position: int) -> tuple[str | None, NextPosition]:
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
    return _create_partition_struct(count).unpack_from(rest)


@lru_cache(128)
def _create_partition_struct(count: int) -> Struct:
    return Struct(">" + "iqi2x" * count)
