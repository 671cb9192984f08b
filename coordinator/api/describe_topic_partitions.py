"""Handle DescribeTopicPartitions, which returns topics' partitions page by page (KIP-966).

Behaviour: the requested topics, all if none is named, sorted by name, with as many partitions as
the request allows, from 1 to 2 000. The cursor in the response says where the next page begins, and
the next request passes it back. A cursor whose topic isn't requested, or whose partition is
negative, gets INVALID_REQUEST for each topic.
Versions: 0.
Simplifications: without an authoriser every operation is allowed; of replicas there is this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.metadata import TOPIC_OPERATIONS
from coordinator.errors import Code, Refused
from coordinator.log.topic_names import check_topic_name
from coordinator.log.topics import BrokerTopic

if TYPE_CHECKING:
    from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
    from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse

API_KEY = 75
VERSIONS = range(1)

_PARTITIONS_MAX = 2_000  # Kafka's default of max.request.partition.size.limit


def handle_request(
    request: DescribeTopicPartitionsRequest,
    context: RequestContext[DescribeTopicPartitionsResponse],
) -> DescribeTopicPartitionsResponse:
    topics = context.services.topics
    cursor = request.cursor
    from_name = cursor.topic_name if cursor else ""
    names: set[str] = {asked.name for asked in request.topics}
    if cursor and (cursor.partition_index < 0 or (names and from_name not in names)):
        return build_error_response(request, context, Code.INVALID_REQUEST)
    wanted = names or {topic.name for topic in topics}
    remaining = max(1, min(request.response_partition_limit, _PARTITIONS_MAX))
    results: list[dict[str, Any]] = []
    next_cursor = None
    for name in sorted(name for name in wanted if name >= from_name):
        if remaining == 0:
            next_cursor = {"topic_name": name, "partition_index": 0}
            break
        try:
            topic = _require_topic(name, context)
        except Refused as refused:
            results.append(_build_failed_topic(name, refused.code))
            continue
        first = cursor.partition_index if cursor and name == from_name else 0
        end = min(len(topic.partitions), first + remaining)
        results.append(_describe_topic(topic, range(first, end), context))
        remaining -= len(range(first, end))
        if end < len(topic.partitions):
            next_cursor = {"topic_name": name, "partition_index": end}
            break
    return context.build_response(topics=results, next_cursor=next_cursor)


def build_error_response(
    request: DescribeTopicPartitionsRequest,
    context: RequestContext[DescribeTopicPartitionsResponse],
    code: Code,
) -> DescribeTopicPartitionsResponse:
    """Return a response with `code` for every topic that the request names."""
    results = [
        _build_failed_topic(topic.name, code, with_operations=False) for topic in request.topics
    ]
    return context.build_response(topics=results, next_cursor=None)


def _require_topic(name: str, context: RequestContext) -> BrokerTopic:
    check_topic_name(name)
    topic = context.services.topics.get(name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _describe_topic(topic: BrokerTopic, indexes: range, context: RequestContext) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": list(_describe_partitions(indexes, context)),
        "topic_authorized_operations": TOPIC_OPERATIONS,
    }


def _describe_partitions(indexes: range, context: RequestContext) -> Iterator[dict[str, Any]]:
    node_id = context.services.config.node_id
    for index in indexes:
        yield {
            "partition_index": index,
            "leader_id": node_id,
            "leader_epoch": 0,
            "replica_nodes": (node_id,),
            "isr_nodes": (node_id,),
            "eligible_leader_replicas": (),
            "last_known_elr": (),
            "offline_replicas": (),
        }


def _build_failed_topic(name: str, code: Code, *, with_operations: bool = True) -> dict[str, Any]:
    return {
        "error_code": code,
        "name": name,
        "topic_id": None,
        "is_internal": False,
        "partitions": (),
        **({"topic_authorized_operations": TOPIC_OPERATIONS} if with_operations else {}),
    }
