"""Encode the metadata of a consumer group, with which a transaction commits as a member of it."""

from __future__ import annotations

import struct

_METADATA_MAGIC = b"CGMDv2:"
_GROUP_AT = len(_METADATA_MAGIC) + struct.calcsize("=i")


def encode_group_metadata(
    group: str, generation: int, member_id: str, instance_id: str | None
) -> bytes:
    """Encode consumer group metadata for `send_offsets_to_transaction`, from our own membership.

    The layout is rd_kafka_consumer_group_metadata_write's of librdkafka 2.16 (CGMDv2).
    """
    instance = b"\x01" if instance_id is None else b"\x00" + instance_id.encode() + b"\x00"
    names = group.encode() + b"\x00" + member_id.encode() + b"\x00"
    return _METADATA_MAGIC + struct.pack("=i", generation) + names + instance


def read_group_of_metadata(group_metadata: bytes) -> str:
    """Return the group id in metadata that `encode_group_metadata` has encoded."""
    return group_metadata[_GROUP_AT:].partition(b"\x00")[0].decode()
