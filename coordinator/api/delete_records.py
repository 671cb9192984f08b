"""Handle DeleteRecords, which raises the start offset of partitions' logs.

Behaviour: each partition's result has its new log start offset. Offset -1 means the high watermark;
an offset before the start changes nothing. Only whole segments are removed from disk, but nothing
before the new start is read any more, which survives a restart.
Versions: 0-2; 2 flexible (KIP-107).
Simplifications: there are no replicas to wait for, so the time-out is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

if TYPE_CHECKING:
    from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
    from kio.schema.delete_records.v2.response import DeleteRecordsResponse

StartOffset: TypeAlias = int

API_KEY = 21
VERSIONS = range(3)

_UNKNOWN_OFFSET = -1


def handle_request(
    request: DeleteRecordsRequest, context: RequestContext[DeleteRecordsResponse]
) -> DeleteRecordsResponse:
    def delete_and_answer(topic: str, requested: DeleteRecordsPartition) -> dict[str, Any]:
        try:
            return {
                "low_watermark": _delete_partition_records(topic, requested, context),
                "error_code": Code.NONE,
            }
        except Refused as refused:
            return _build_failed_partition(refused.code)

    return _build_response(request, context, delete_and_answer)


def build_error_response(
    request: DeleteRecordsRequest, context: RequestContext[DeleteRecordsResponse], code: Code
) -> DeleteRecordsResponse:
    """Return a response with `code` for every partition."""
    return _build_response(request, context, lambda topic, requested: _build_failed_partition(code))


def _build_response(
    request: DeleteRecordsRequest,
    context: RequestContext[DeleteRecordsResponse],
    answer_partition: Callable[[str, DeleteRecordsPartition], dict[str, Any]],
) -> DeleteRecordsResponse:
    return context.build_response(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        **answer_partition(topic.name, partition),
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )


def _delete_partition_records(
    name: str, requested: DeleteRecordsPartition, context: RequestContext
) -> StartOffset:
    """Delete the records before the requested offset and return the new log start offset.

    Raises: Refused, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION for an internal topic, or
    as `Partition.delete_records_before`.
    """
    topics = context.services.topics
    topic, partition = topics.get(name), topics.find_partition(name, requested.partition_index)
    if topic is None or partition is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{name}-{requested.partition_index}")
    if topic.is_internal:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{name} is the broker's own")
    return partition.delete_records_before(requested.offset)


def _build_failed_partition(code: Code) -> dict[str, Any]:
    return {"low_watermark": _UNKNOWN_OFFSET, "error_code": code}
