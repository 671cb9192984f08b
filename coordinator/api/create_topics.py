"""Handle CreateTopics, which creates topics with partitions and configurations.

Behaviour: each topic has a result of its own, and is on disk when that is sent; all that can be
created are created in one write. A name that stands in the request twice is answered once, with
INVALID_REQUEST, and so is that of the broker's metadata log. These are checked in this order: the
name, the configuration, the numbers. A replication factor other than 1 or -1 is refused: there is
one broker. Partitions may be given as a number, as -1 for the default, or as a replica assignment.
More than 10 000 partitions in one request are refused for all topics.
Versions: 4 the defaults (KIP-464), 5 the configuration in the answer (KIP-525), flexible,
7 topic ids (KIP-516).
Simplifications: the time-out is ignored, as topics are created at once. With `validate_only` there
is no topic id, where Kafka returns one that is never used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from coordinator.api.config_description import describe_topic_configs, to_common_response_fields
from coordinator.api.context import RequestContext
from coordinator.api.replica_assignment import check_replica_assignment
from coordinator.errors import Code, Refused
from coordinator.log.configs import validate_topic_configs
from coordinator.log.data_directory import TopicEntry
from coordinator.log.topics import HIDDEN_TOPICS, PARTITIONS_MAX

if TYPE_CHECKING:
    from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
    from kio.schema.create_topics.v7.response import CreateTopicsResponse

API_KEY = 19
VERSIONS = range(2, 8)

PartitionCount: TypeAlias = int
ValidConfigs: TypeAlias = Mapping[str, str]


def handle_request(
    request: CreateTopicsRequest, context: RequestContext[CreateTopicsResponse]
) -> CreateTopicsResponse:
    if _count_requested_partitions(request, context) > PARTITIONS_MAX:
        message = "Excessively large number of partitions per request."
        return _refuse_with_message(request, context, Refused(Code.POLICY_VIOLATION, message))
    times_named = Counter(topic.name for topic in request.topics)
    topics_named_once = [topic for topic in request.topics if times_named[topic.name] == 1]
    results = _create_topics(topics_named_once, context, validate_only=request.validate_only)
    for name, times in times_named.items():
        if times > 1:
            results.append(
                _build_failed_topic(name, Refused(Code.INVALID_REQUEST, "Duplicate topic name."))
            )
    return context.build_response(topics=results)


def build_error_response(
    request: CreateTopicsRequest, context: RequestContext[CreateTopicsResponse], code: Code
) -> CreateTopicsResponse:
    """Return a response with `code` for every topic."""
    return _refuse_with_message(request, context, Refused(code))


def _refuse_with_message(
    request: CreateTopicsRequest, context: RequestContext[CreateTopicsResponse], refusal: Refused
) -> CreateTopicsResponse:
    return context.build_response(
        topics=[_build_failed_topic(asked.name, refusal) for asked in request.topics]
    )


def _count_requested_partitions(request: CreateTopicsRequest, context: RequestContext) -> int:
    default = context.services.config.num_partitions
    return sum(
        len(asked.assignments) or (default if asked.num_partitions == -1 else asked.num_partitions)
        for asked in request.topics
    )


def _create_topics(
    requested_topics: Sequence[CreatableTopic], context: RequestContext, *, validate_only: bool
) -> list[dict[str, Any]]:
    """Create the topics that can be, in one write to the disk; return a result for each.

    If the write fails, none is created.
    """
    topics = context.services.topics
    planned: list[TopicEntry] = []
    results: dict[str, dict[str, Any]] = {}
    for requested in requested_topics:
        try:
            partitions, configs = _validate_new_topic(requested, context, planned)
            if not validate_only:
                planned.append(
                    topics.plan_topic_or_refuse(requested.name, partitions, configs, planned)
                )
        except Refused as refused:
            results[requested.name] = _build_failed_topic(requested.name, refused)
            continue
        topic_id = None if validate_only else planned[-1].topic_id
        results[requested.name] = _build_created_topic(
            requested.name, topic_id, partitions, configs, context
        )
    if planned:
        try:
            topics.create_planned_topics(planned)
        except Refused as refused:
            results |= {entry.name: _build_failed_topic(entry.name, refused) for entry in planned}
    return list(results.values())


def _validate_new_topic(
    requested: CreatableTopic, context: RequestContext, planned: Sequence[TopicEntry]
) -> tuple[PartitionCount, ValidConfigs]:
    """Return the number of partitions and the configuration of a topic to be created.

    Raises: Refused as `TopicRegistry.check_new_name` and `validate_topic_configs` do, and for what
    one broker can't do.
    """
    if requested.name in HIDDEN_TOPICS:
        message = f"Creation of internal topic {requested.name} is prohibited."
        raise Refused(Code.INVALID_REQUEST, message)
    context.services.topics.check_new_name(requested.name, planned)
    configs = validate_topic_configs({config.name: config.value for config in requested.configs})
    return _decide_partition_count(requested, context), configs


def _build_created_topic(
    name: str,
    topic_id: UUID | None,
    partition_count: int,
    configs: Mapping[str, str],
    context: RequestContext,
) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_message": None,
        "num_partitions": partition_count,
        "replication_factor": 1,
        "configs": [
            to_common_response_fields(each)
            for each in describe_topic_configs(configs, context.services.dynamic_configs)
        ],
    }


def _decide_partition_count(requested: CreatableTopic, context: RequestContext) -> PartitionCount:
    """Return the number of partitions that a topic shall have.

    Raises: Refused for invalid numbers, and for ones that need more brokers.
    """
    config = context.services.config
    if requested.assignments:
        return _validate_assigned_partitions(requested, config.node_id)
    _check_positive_factor(requested.replication_factor)
    if requested.num_partitions < -1 or requested.num_partitions == 0:
        raise Refused(
            Code.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    check_replication_factor(requested.replication_factor)
    return (
        config.num_partitions if requested.num_partitions == -1 else int(requested.num_partitions)
    )


def check_replication_factor(factor: int) -> None:
    """Raise Refused (INVALID_REPLICATION_FACTOR) for a factor that one broker can't have.

    -1 stands for the default.
    """
    _check_positive_factor(factor)
    if factor > 1:
        raise Refused(
            Code.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of "
            f"{factor} cannot be reached because only 1 broker(s) are registered or some brokers "
            "have all their log directories cordoned.",
        )


def _check_positive_factor(factor: int) -> None:
    if factor < -1 or factor == 0:
        raise Refused(
            Code.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )


def _validate_assigned_partitions(requested: CreatableTopic, node_id: int) -> PartitionCount:
    for what, number in (
        ("replication factor", requested.replication_factor),
        ("numPartitions", requested.num_partitions),
    ):
        if number != -1:
            raise Refused(
                Code.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    indexes: set[int] = set()
    for assignment in requested.assignments:
        index = assignment.partition_index
        if index in indexes:
            message = f"Found multiple manual partition assignments for partition {index}"
            raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, message)
        check_replica_assignment(assignment.broker_ids, node_id)
        indexes.add(index)
    if indexes != set(range(len(indexes))):
        message = "partitions should be a consecutive 0-based integer sequence"
        raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, message)
    return len(indexes)


def _build_failed_topic(name: str, refusal: Refused) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": None,
        "error_code": refusal.code,
        "error_message": refusal.message or None,
        "configs": (),
    }
