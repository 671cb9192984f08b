"""Encode the records of a commit together, several times faster than one by one.

The records of a `CommittedColumns` differ in partition, offset and leader epoch only, and all have
one size: what stands between these fields is made once for a group and topic, and the columns are
filled in by one call. The bytes are those of `records` and `log.batch`: a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TypeAlias

from coordinator.offsets.records import VALUE_VERSION, encode_group_id_and_topic, encode_value_tail
from coordinator.offsets.state import CommittedColumns
from coordinator.shard.equal_records import RECORD_END, build_equal_record_frames

RECORDS_MAX = 100  # of a commit that is encoded here, so that what is cached has a limit

_Field: TypeAlias = bytes | int
PackFields: TypeAlias = Callable[..., bytes]

_INT16 = Struct(">h")
_FIXED_KEY_BYTES = 4  # the partition
_FIXED_VALUE_BYTES = 14  # version, offset, leader epoch
_FIELDS = 6  # of a record, in the order of `_lay_out_records`


def encode_commit_records(commit: CommittedColumns) -> bytes | None:
    """Encode the records of a commit as they stand in a batch, or None if they are too many."""
    count = len(commit.partitions)
    if count > RECORDS_MAX:
        return None
    topic_id = commit.topic_id
    tail = encode_value_tail(commit.committed_at_ms, None if topic_id is None else topic_id.int)
    pack, template = _lay_out_records(commit.group_id, commit.topic, count, len(tail))
    fields = template.copy()
    fields[1::_FIELDS] = commit.partitions
    fields[3::_FIELDS] = commit.offsets
    fields[4::_FIELDS] = commit.leader_epochs
    fields[5::_FIELDS] = [b"\x01" + tail + RECORD_END] * count  # no metadata
    return pack(*fields)


@lru_cache(1_024)
def _lay_out_records(
    group_id: str, topic: str, count: int, tail_bytes: int
) -> tuple[PackFields, list[_Field]]:
    """Return the function that packs the fields of all records, and the fields that don't change.

    The fields of a record are: all up to the partition, the partition, all up to the offset, the
    offset, the leader epoch, and the rest.
    """
    names = encode_group_id_and_topic(group_id, topic)
    key_bytes = len(names) + _FIXED_KEY_BYTES
    value_bytes = _FIXED_VALUE_BYTES + 1 + tail_bytes
    heads, between = build_equal_record_frames(count, key_bytes, value_bytes)
    before_offset = between + _INT16.pack(VALUE_VERSION)
    layout: list[str] = []
    fields: list[_Field] = []
    for head in heads:
        start = head + names
        layout.append(f"{len(start)}si{len(before_offset)}sqi{1 + tail_bytes + len(RECORD_END)}s")
        fields += [start, 0, before_offset, 0, 0, b""]
    return Struct(">" + "".join(layout)).pack, fields
