"""Handles OffsetDelete, which deletes offsets of a group for unused partitions (KIP-496).

Behaviour: each partition has a code of its own: UNKNOWN_TOPIC_OR_PARTITION for one that doesn't
exist, GROUP_SUBSCRIBED_TO_TOPIC for one that a member may be reading, NONE for one without an
offset. Pending offsets of open transactions are deleted too. At the top, with no partitions in the
response: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP for a group with members that are no consumers;
INVALID_GROUP_ID for an empty group id.
Versions: v0 only.
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.api.waiting import answer_in_slices
from coordinator.errors import Code, Refused

API_KEY = 47
VERSIONS = range(1)


def handle(request: Any, context: Context) -> Any:
    if not request.group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")
    topics = context.broker.topics
    requested = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    existing = [partition for partition in requested if topics.partition(*partition) is not None]
    groups = context.broker.coordinators.groups
    return answer_in_slices(
        groups.offsets.delete_in_slices(request.group_id, existing),
        groups.sliced,
        lambda deleted: _reply(request, context, dict(zip(existing, deleted, strict=True))),
    )


def _reply(request: Any, context: Context, codes: Mapping[tuple[str, int], Code]) -> Any:
    return context.reply(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        "error_code": codes.get(
                            (topic.name, partition.partition_index), Code.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=coordinator_code(code), topics=())
