"""Handle OffsetDelete, which deletes offsets of a group for unused partitions (KIP-496).

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
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.deferred_answer import Deferrable, answer_in_slices
from coordinator.errors import Code, Refused
from coordinator.offsets.state import TopicPartition

if TYPE_CHECKING:
    from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
    from kio.schema.offset_delete.v0.response import OffsetDeleteResponse

API_KEY = 47
VERSIONS = range(1)


def handle_request(
    request: OffsetDeleteRequest, context: RequestContext[OffsetDeleteResponse]
) -> Deferrable[OffsetDeleteResponse]:
    if not request.group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")
    topics = context.services.topics
    requested = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    existing = [
        partition for partition in requested if topics.find_partition(*partition) is not None
    ]
    groups = context.services.coordinators.groups
    return answer_in_slices(
        groups.offsets.delete_offsets_in_slices(request.group_id, existing),
        groups.sliced_executor,
        lambda deleted: _build_response(
            request, context, dict(zip(existing, deleted, strict=True))
        ),
    )


def _build_response(
    request: OffsetDeleteRequest,
    context: RequestContext[OffsetDeleteResponse],
    codes: Mapping[TopicPartition, Code],
) -> OffsetDeleteResponse:
    return context.build_response(
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


def build_error_response(
    request: OffsetDeleteRequest, context: RequestContext[OffsetDeleteResponse], code: Code
) -> OffsetDeleteResponse:
    return context.build_response(error_code=translate_coordinator_code(code), topics=())
