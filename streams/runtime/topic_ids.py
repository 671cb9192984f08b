"""Tell an input topic from a later one of the same name, by the topic's id.

A committed offset counts the records of one topic. Where the topic was deleted and made again, the
same number is another place, or none: the first records of the new topic would be skipped without a
word if it were taken. So committed offsets name the ids of their task's inputs, as hashes of 63
bits (`streams.runtime.offset_metadata`). Kafka has ids since 2.8 (KIP-516); a broker without them
says zero, and nothing is compared there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.interfaces import AdminClient
from streams.runtime.offset_metadata import decode_metadata

_ZERO_ID = "A" * 22
"""The base64 text of the id zero, which a broker without topic ids gives."""
_HASH_BYTES, _HASH_MASK = 8, 2**63 - 1


def fetch_topic_id_hashes(admin: AdminClient, topics: Iterable[str]) -> dict[str, int]:
    """Fetch the hash of the id of each topic; topics without an id are left out."""
    ids = admin.fetch_topic_ids(sorted(set(topics)))
    return {topic: hash_topic_id(text) for topic, text in ids.items() if text != _ZERO_ID}


def hash_topic_id(topic_id: str) -> int:
    """Return a hash of 63 bits of a topic's id."""
    digest = blake2b(topic_id.encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big") & _HASH_MASK


def find_offsets_of_former_topics(
    committed: Mapping[Partition, OffsetAndMetadata], topic_ids: Mapping[str, int]
) -> dict[Partition, int]:
    """Return the committed offsets whose topic had another id at the commit.

    `topic_ids` are the hashes of the topics' ids now. An offset or a topic without one is taken as
    it is.
    """
    former = {}
    for partition, held in committed.items():
        now = topic_ids.get(partition.topic)
        then = decode_metadata(held.metadata).topic_id_hash(partition.topic)
        if None not in (now, then) and now != then:
            former[partition] = held.offset
    return former
