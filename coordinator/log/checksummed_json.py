"""Encode small files of one topic as JSON with a checksum, so that a damaged one is noticed.

the checksum in hexadecimal, a line feed, the JSON
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from crc32c import crc32c

from coordinator.log.data_directory import uuid_from_base64, uuid_to_base64

_VERSION = 1


def encode_checksummed(topic_id: UUID, **content: Any) -> bytes:
    """Encode the content as JSON with its topic id, behind a checksum."""
    data = json.dumps(
        {"version": _VERSION, "topic_id": uuid_to_base64(topic_id), **content}
    ).encode()
    return b"%08x\n%s" % (crc32c(data), data)


def decode_checksummed(data: bytes, topic_id: UUID) -> dict[str, Any]:
    """Decode the content of a file of `encode_checksummed` for this topic.

    Raises: ValueError, KeyError or TypeError if it is damaged, or of another version or topic.
    """
    crc, _, content = data.partition(b"\n")
    if int(crc, 16) != crc32c(content):
        raise ValueError("checksum")
    found: dict[str, Any] = json.loads(content)
    if found["version"] != _VERSION or uuid_from_base64(found["topic_id"]) != topic_id:
        raise ValueError("of another version or topic")
    return found
