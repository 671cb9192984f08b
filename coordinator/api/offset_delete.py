"""OffsetDelete: forget offsets of a group, for partitions that it doesn't read any more (KIP-496).

Behaviour: partitions are judged one by one: UNKNOWN_TOPIC_OR_PARTITION for one that isn't there,
GROUP_SUBSCRIBED_TO_TOPIC for one that a member may be reading, none for one without an offset. An
offset that an open transaction holds goes too. At the top, with no partitions in the answer:
GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP for a group with members that are no consumers;
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
    asked = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    there = [partition for partition in asked if topics.partition(*partition) is not None]
    groups = context.broker.coordinators.groups
    return answer_in_slices(
        groups.offsets.delete_in_slices(request.group_id, there),
        groups.sliced,
        lambda deleted: _reply(request, context, dict(zip(there, deleted, strict=True))),
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
