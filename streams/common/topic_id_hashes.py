"""Hash the ids of topics, by which a topic is told from a later one of the same name (KIP-516)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

_ZERO_ID = "A" * 22
"""The base64 text of the id zero, which a broker without topic ids gives."""

_HASH_BYTES, _HASH_MASK = 8, 2**63 - 1


def hash_topic_ids(topic_ids: Mapping[str, str]) -> dict[str, int]:
    """Return the hash of each id by topic; topics without an id are left out."""
    return {topic: hash_topic_id(text) for topic, text in topic_ids.items() if text != _ZERO_ID}


def hash_topic_id_or_none(topic_id: str) -> int | None:
    """Return the hash of a topic's id; None for the one that a broker without topic ids gives."""
    return None if topic_id == _ZERO_ID else hash_topic_id(topic_id)


def to_topic_id_or_none(topic_id: str) -> str | None:
    """Return the id; None for the one that a broker without topic ids gives."""
    return None if topic_id == _ZERO_ID else topic_id


def hash_topic_id(topic_id: str) -> int:
    """Return a hash of 63 bits of a topic's id."""
    digest = blake2b(topic_id.encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big") & _HASH_MASK
