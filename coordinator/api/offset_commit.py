"""Handle OffsetCommit, which commits offsets of a group.

Behaviour: commits offsets of a group, by a member of its generation, or by anyone while it has no
members; of a consumer group, by a member at its epoch (see `groups.consumer.validate`). A commit
keeps the session of a classic member alive. A request without an existing partition doesn't reach
the group, so that its member isn't checked.
Versions: v2-4 a retention time, after which these offsets expire; v6 leader epoch; v7 static
members; v8 flexible; v9 member epochs (KIP-848), and GROUP_ID_NOT_FOUND where
ILLEGAL_GENERATION was the code before; v10 topic ids instead of names.
An empty group id is valid, for old clients' sake.
Simplifications: none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from coordinator.api import plain_commit
from coordinator.api.context import CreateContext, ReadFrame, RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.plain_commit import PlainCommit
from coordinator.api.requested_offsets import (
    RequestedOffsets,
    RequestedPartitions,
    build_refused_topics,
)
from coordinator.errors import Code, Refused
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand
from coordinator.wire.codec import EncodedResponse, build_entity, encode_for_reuse, to_ms

if TYPE_CHECKING:
    from kio.schema.offset_commit.v10.request import OffsetCommitRequest
    from kio.schema.offset_commit.v10.response import OffsetCommitResponse

API_KEY = 8
VERSIONS = range(2, 11)

DEFAULT_RETENTION_MS = -1
CACHED_PARTITIONS_MAX = 126  # of a response that is cached: a plain commit has no more


def create_frame_reader(
    version: int, read_any: ReadFrame, create_context: CreateContext
) -> ReadFrame:
    """Return a reader of OffsetCommit frames, with a fast path for their usual form."""
    if version not in plain_commit.VERSIONS:
        return read_any
    return plain_commit.create_frame_reader(read_any, create_context)


def handle_request(
    request: OffsetCommitRequest | PlainCommit, context: RequestContext[OffsetCommitResponse]
) -> OffsetCommitResponse | EncodedResponse:
    if isinstance(request, PlainCommit):
        return _commit_plain_request(request, context)
    topics = context.services.topics
    if context.version >= 10:
        found_topics = [topics.by_id(topic.topic_id) for topic in request.topics]
        unknown_topic = Code.UNKNOWN_TOPIC_ID
    else:
        found_topics = [topics.get(topic.name) for topic in request.topics]  # type: ignore[attr-defined]  # up to version 9
        unknown_topic = Code.UNKNOWN_TOPIC_OR_PARTITION
    requested = RequestedOffsets(request.topics, found_topics, unknown_topic)
    committer = CommittingMember(
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=getattr(request, "group_instance_id", None),
        knows_epochs=context.version >= 9,
    )
    codes: list[Code] = []
    if requested.offsets:
        retention_ms = _requested_retention_ms(request, context.version)
        command = OffsetCommitCommand(
            request.group_id, requested.offsets, retention_ms=retention_ms
        )
        try:
            codes = _commit_offsets(command, committer, context)
        except Refused as error:
            codes = requested.build_refusal_codes(error.code)
    if len(codes) <= CACHED_PARTITIONS_MAX and requested.all_known and not any(codes):
        return _encode_all_committed(context.response_type, requested.requested_partitions)
    return context.build_response(topics=requested.build_topics(codes))


def _commit_plain_request(
    request: PlainCommit, context: RequestContext[OffsetCommitResponse]
) -> OffsetCommitResponse | EncodedResponse:
    try:
        _commit_offsets(request.command, request.committer, context)
    except Refused as error:
        return build_error_response(request, context, error.code)
    offsets = request.offsets
    partitions_by_topic = ((offsets.topic, None, offsets.partitions),)
    return _encode_all_committed(context.response_type, partitions_by_topic)


def _commit_offsets(
    command: OffsetCommitCommand, committer: CommittingMember, context: RequestContext
) -> list[Code]:
    unknown_group = Code.GROUP_ID_NOT_FOUND if context.version >= 9 else Code.ILLEGAL_GENERATION
    groups = context.services.coordinators.groups
    return groups.offsets.commit_offsets(command, committer, unknown_group_code=unknown_group)


@lru_cache(1_024)  # a member commits for the same partitions again and again
def _encode_all_committed(
    response_type: type, partitions_by_topic: RequestedPartitions
) -> EncodedResponse:
    topics = [
        {
            "name": name,
            "topic_id": topic_id,
            "partitions": [{"partition_index": i, "error_code": Code.NONE} for i in partitions],
        }
        for name, topic_id, partitions in partitions_by_topic
    ]
    return encode_for_reuse(build_entity(response_type, {"topics": topics}))


def build_error_response(
    request: OffsetCommitRequest | PlainCommit,
    context: RequestContext[OffsetCommitResponse],
    code: Code,
) -> OffsetCommitResponse:
    refused = translate_coordinator_code(code)
    if not isinstance(request, PlainCommit):
        return context.build_response(topics=build_refused_topics(request.topics, refused))
    offsets = request.offsets
    partitions = [{"partition_index": i, "error_code": refused} for i in offsets.partitions]
    return context.build_response(topics=[{"name": offsets.topic, "partitions": partitions}])


def _requested_retention_ms(request: OffsetCommitRequest, version: int) -> int | None:
    if version > 4:
        return None
    wanted_ms = to_ms(request.retention_time)  # type: ignore[attr-defined]  # up to version 4
    return None if wanted_ms == DEFAULT_RETENTION_MS else wanted_ms
