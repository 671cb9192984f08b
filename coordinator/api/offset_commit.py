"""OffsetCommit.

Behaviour: commits offsets of a group, by a member of its generation, or by anyone while it has no
members. A commit keeps the member's session alive.
Versions: v2-4 a retention time (ignored, as by Kafka >= 2.1); v6 leader epoch; v7 static members;
v8 flexible; v9 member epochs (KIP-848), and GROUP_ID_NOT_FOUND (69) where ILLEGAL_GENERATION was
told before; v10 topic ids instead of names.
An empty group id is as good as any other, for old clients' sake.
Simplifications: committed offsets don't expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator.api.committing import offset_of
from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.errors import Code
from coordinator.groups.classic.validate import Committer
from coordinator.log.topics import Topic
from coordinator.offsets.commit import CommitOffset, CommitOffsets

API_KEY = 8
VERSIONS = range(2, 11)


def handle(request: Any, context: Context) -> Any:
    codes: dict[tuple[int, int], Code] = {}
    places: list[tuple[int, int]] = []
    offsets: list[CommitOffset] = []
    for place, topic, partition in _wanted(request, context):
        if topic is None:
            codes[place] = (
                Code.UNKNOWN_TOPIC_ID if context.version >= 10 else Code.UNKNOWN_TOPIC_OR_PARTITION
            )
        elif not 0 <= partition.partition_index < len(topic.partitions):
            codes[place] = Code.UNKNOWN_TOPIC_OR_PARTITION
        else:
            places.append(place)
            offsets.append(offset_of(topic, partition))
    committer = Committer(
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=getattr(request, "group_instance_id", None),
    )
    committed = context.broker.coordinators.groups.offsets.commit(
        CommitOffsets(request.group_id, offsets),
        committer,
        unknown_group=(
            Code.GROUP_ID_NOT_FOUND if context.version >= 9 else Code.ILLEGAL_GENERATION
        ),
    )
    codes.update(zip(places, committed, strict=True))
    return _reply(request, context, codes)


def refuse(request: Any, context: Context, code: Code) -> Any:
    told = coordinator_code(code)
    return _reply(request, context, {place: told for place, _, _ in _wanted(request, context)})


def _wanted(request: Any, context: Context) -> Iterator[tuple[tuple[int, int], Topic | None, Any]]:
    """Each partition with its place in the request and its topic, if that is known."""
    topics = context.broker.topics
    for i, wanted in enumerate(request.topics):
        topic = topics.by_id(wanted.topic_id) if context.version >= 10 else topics.get(wanted.name)
        for j, partition in enumerate(wanted.partitions):
            yield (i, j), topic, partition


def _reply(request: Any, context: Context, codes: dict[tuple[int, int], Code]) -> Any:
    return context.reply(
        topics=[
            {
                "name": getattr(topic, "name", None),
                "topic_id": getattr(topic, "topic_id", None),
                "partitions": [
                    {"partition_index": partition.partition_index, "error_code": codes[i, j]}
                    for j, partition in enumerate(topic.partitions)
                ],
            }
            for i, topic in enumerate(request.topics)
        ]
    )
