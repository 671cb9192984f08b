"""Send OffsetCommit in any version for several topics, by name or by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator.errors import Code
from tests.conformance.wire import Api, Client

NO_ID = UUID(int=0)


def commit(
    client: Client, version: int, group: str, topics: Mapping[Any, Sequence[Any]], **fields: Any
) -> dict[tuple[Any, int], Code]:
    """Commit offsets of partitions; return the codes by topic and partition.

    Topics are names, or ids from version 10 on; a partition is its index or its fields. The offset
    is 5 unless they say otherwise.
    """
    response = client.send(
        Api.OFFSET_COMMIT,
        version,
        group_id=group,
        generation_id_or_member_epoch=fields.pop("generation", -1),
        **fields,
        topics=[
            {
                **({"topic_id": topic} if isinstance(topic, UUID) else {"name": topic}),
                "partitions": [
                    {
                        "committed_offset": 5,
                        "committed_metadata": None,
                        **(each if isinstance(each, dict) else {"partition_index": each}),
                    }
                    for each in partitions
                ],
            }
            for topic, partitions in topics.items()
        ],
    )
    return {
        (id_of(topic) if version >= 10 else topic.name, part.partition_index): part.error_code
        for topic in response.topics
        for part in topic.partitions
    }


def id_of(topic: Any) -> UUID:
    """Return the id of a topic, or NO_ID if kio read none."""
    found: UUID | None = topic.topic_id
    return NO_ID if found is None else found
