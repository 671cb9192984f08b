"""Handle OffsetFetch, which returns committed offsets of groups.

Behaviour: returns the committed offsets of groups; -1 where there is none. With require_stable a
partition with a pending offset of an open transaction gets UNSTABLE_OFFSET_COMMIT instead.
Versions: v2 all partitions (null topics) and a top-level code; v5 leader epoch; v6 flexible; v7
require_stable (KIP-447); v8 several groups; v9 member and epoch (KIP-848); v10 topic ids, those
that are unknown last.
Member and epoch are checked for a consumer group, as by Kafka; a classic one lets anybody read.
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.errors import Code, Refused
from coordinator.offsets.fetch import FetchedOffset

if TYPE_CHECKING:
    from kio.schema.offset_fetch.v10.request import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
    )
    from kio.schema.offset_fetch.v10.response import OffsetFetchResponse

API_KEY = 9
VERSIONS = range(1, 11)


def handle_request(
    request: OffsetFetchRequest, context: RequestContext[OffsetFetchResponse]
) -> OffsetFetchResponse:
    require_stable = getattr(request, "require_stable", False)
    if context.version < 8:
        topics = _fetch_offsets(
            request.group_id,  # type: ignore[attr-defined]  # up to version 7
            request.topics,  # type: ignore[attr-defined]  # up to version 7
            context,
            require_stable=require_stable,
        )
        return context.build_response(topics=topics)
    return context.build_response(
        groups=[_fetch_group(group, context, require_stable) for group in request.groups]
    )


def _fetch_group(
    group: OffsetFetchRequestGroup, context: RequestContext, require_stable: bool
) -> dict[str, Any]:
    """Return one group's result; an error of one group doesn't affect the others."""
    code = Code.NONE
    topics: Sequence[dict[str, Any]] = ()
    try:
        topics = _fetch_offsets(
            group.group_id,
            group.topics,
            context,
            require_stable=require_stable,
            member_id=getattr(group, "member_id", None),
            member_epoch=getattr(group, "member_epoch", -1),
        )
    except Refused as refused:
        code = translate_coordinator_code(refused.code)
    return {"group_id": group.group_id, "topics": topics, "error_code": code}


def build_error_response(
    request: OffsetFetchRequest, context: RequestContext[OffsetFetchResponse], code: Code
) -> OffsetFetchResponse:
    """Return a response with `code` for every group.

    Below version 8 it is at the top, below version 2, which has no place there, at every partition.
    """
    if context.version >= 8:
        groups = [
            {"group_id": group.group_id, "topics": (), "error_code": code}
            for group in request.groups
        ]
        return context.build_response(groups=groups)
    if context.version >= 2:
        return context.build_response(error_code=code, topics=())
    topics = [
        _build_topic_result(topic.name, None, _build_failed_offsets(topic.partition_indexes, code))
        for topic in request.topics  # type: ignore[attr-defined]  # up to version 7
    ]
    return context.build_response(topics=topics)


def _fetch_offsets(
    group_id: str,
    topics: Sequence[OffsetFetchRequestTopics] | None,
    context: RequestContext,
    **options: Any,
) -> list[dict[str, Any]]:
    offsets = context.services.coordinators.groups.offsets
    if topics is None:
        found = offsets.fetch_offsets(group_id, None, **options)
        return _group_by_topic(found, context)
    named = [
        (_find_topic_name(topic, context), getattr(topic, "topic_id", None), topic)
        for topic in topics
    ]
    wanted = [
        (name, index, topic_id)
        for name, topic_id, topic in named
        if name is not None
        for index in topic.partition_indexes
    ]
    fetched = iter(offsets.fetch_offsets(group_id, wanted, **options))
    return [
        _build_topic_result(name, topic_id, islice(fetched, len(topic.partition_indexes)))
        for name, topic_id, topic in named
        if name is not None
    ] + [
        _build_topic_result(
            "", topic_id, _build_failed_offsets(topic.partition_indexes, Code.UNKNOWN_TOPIC_ID)
        )
        for name, topic_id, topic in named
        if name is None
    ]


def _build_failed_offsets(partitions: Iterable[int], code: Code) -> list[FetchedOffset]:
    return [FetchedOffset("", partition, code=code) for partition in partitions]


def _find_topic_name(topic: OffsetFetchRequestTopics, context: RequestContext) -> str | None:
    if context.version < 10:
        name: str = topic.name  # type: ignore[attr-defined]  # up to version 9
        return name
    found = context.services.topics.by_id(topic.topic_id)
    return None if found is None else found.name


def _group_by_topic(
    fetched: Iterable[FetchedOffset], context: RequestContext
) -> list[dict[str, Any]]:
    """Group the committed offsets of one group by topic, as a response lists them.

    From version 10 on topics are returned by id, so that a deleted one, which has none, is left
    out.
    """
    results = []
    for name, found in groupby(fetched, key=lambda offset: offset.topic):
        topic = context.services.topics.get(name)
        if context.version < 10 or topic is not None:
            results.append(_build_topic_result(name, None if topic is None else topic.id, found))
    return results


def _build_topic_result(
    name: str, topic_id: UUID | None, fetched: Iterable[FetchedOffset]
) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "partitions": [_build_partition_result(offset) for offset in fetched],
    }


def _build_partition_result(fetched: FetchedOffset) -> dict[str, Any]:
    return {
        "partition_index": fetched.partition,
        "committed_offset": fetched.offset,
        "committed_leader_epoch": fetched.leader_epoch,
        "metadata": fetched.metadata,
        "error_code": fetched.code,
    }
