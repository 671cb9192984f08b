"""Handles CreateTopics, which creates topics with partitions and configurations.

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
from typing import Any
from uuid import UUID

from coordinator.api.assigning import check_assignment
from coordinator.api.context import Context
from coordinator.api.describing import as_fields, describe_topic
from coordinator.errors import Code, Refused
from coordinator.log.configs import check_configs
from coordinator.log.storage import TopicEntry
from coordinator.log.topics import HIDDEN_TOPICS, PARTITIONS_MAX

API_KEY = 19
VERSIONS = range(2, 8)


def handle(request: Any, context: Context) -> Any:
    if _partitions_in_all(request, context) > PARTITIONS_MAX:
        message = "Excessively large number of partitions per request."
        return _refuse(request, context, Refused(Code.POLICY_VIOLATION, message))
    times_named = Counter(topic.name for topic in request.topics)
    topics_named_once = [topic for topic in request.topics if times_named[topic.name] == 1]
    results = _create(topics_named_once, context, validate_only=request.validate_only)
    for name, times in times_named.items():
        if times > 1:
            results.append(_failed(name, Refused(Code.INVALID_REQUEST, "Duplicate topic name.")))
    return context.reply(topics=results)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every topic."""
    return _refuse(request, context, Refused(code))


def _refuse(request: Any, context: Context, refused: Refused) -> Any:
    return context.reply(topics=[_failed(asked.name, refused) for asked in request.topics])


def _partitions_in_all(request: Any, context: Context) -> int:
    default = context.broker.config.num_partitions
    return sum(
        len(asked.assignments) or (default if asked.num_partitions == -1 else asked.num_partitions)
        for asked in request.topics
    )


def _create(asked: Sequence[Any], context: Context, *, validate_only: bool) -> list[dict[str, Any]]:
    """Create the topics that can be, in one write to the disk; return a result for each.

    If the write fails, none is created.
    """
    topics = context.broker.topics
    planned: list[TopicEntry] = []
    results = {}
    for requested in asked:
        try:
            partitions, configs = _checked(requested, context, planned)
            if not validate_only:
                planned.append(topics.plan(requested.name, partitions, configs, planned))
        except Refused as refused:
            results[requested.name] = _failed(requested.name, refused)
            continue
        topic_id = None if validate_only else planned[-1].topic_id
        results[requested.name] = _done(requested.name, topic_id, partitions, configs, context)
    if planned:
        try:
            topics.create_all(planned)
        except Refused as refused:
            results |= {entry.name: _failed(entry.name, refused) for entry in planned}
    return list(results.values())


def _checked(
    asked: Any, context: Context, planned: Sequence[TopicEntry]
) -> tuple[int, Mapping[str, str]]:
    """Return the number of partitions and the configuration of a topic to be created.

    Raises: Refused as `Topics.check_new` and `check_configs`, and for what one broker can't do.
    """
    if asked.name in HIDDEN_TOPICS:
        message = f"Creation of internal topic {asked.name} is prohibited."
        raise Refused(Code.INVALID_REQUEST, message)
    context.broker.topics.check_new(asked.name, planned)
    configs = check_configs({config.name: config.value for config in asked.configs})
    return _partitions(asked, context), configs


def _done(
    name: str,
    topic_id: UUID | None,
    partitions: int,
    configs: Mapping[str, str],
    context: Context,
) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_message": None,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [as_fields(each) for each in describe_topic(configs, context.broker.dynamic)],
    }


def _partitions(asked: Any, context: Context) -> int:
    """Return the number of partitions that a topic shall have.

    Raises: Refused for invalid numbers, and for ones that need more brokers.
    """
    config = context.broker.config
    if asked.assignments:
        return _assigned(asked, config.node_id)
    if asked.replication_factor < -1 or asked.replication_factor == 0:
        raise Refused(
            Code.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if asked.num_partitions < -1 or asked.num_partitions == 0:
        raise Refused(
            Code.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if asked.replication_factor > 1:
        factor = asked.replication_factor
        raise Refused(
            Code.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of "
            f"{factor} cannot be reached because only 1 broker(s) are registered or some brokers "
            "have all their log directories cordoned.",
        )
    return config.num_partitions if asked.num_partitions == -1 else int(asked.num_partitions)


def _assigned(asked: Any, node_id: int) -> int:
    for what, number in (
        ("replication factor", asked.replication_factor),
        ("numPartitions", asked.num_partitions),
    ):
        if number != -1:
            raise Refused(
                Code.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    indexes: set[int] = set()
    for assignment in asked.assignments:
        index = assignment.partition_index
        if index in indexes:
            message = f"Found multiple manual partition assignments for partition {index}"
            raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, message)
        check_assignment(assignment.broker_ids, node_id)
        indexes.add(index)
    if indexes != set(range(len(indexes))):
        message = "partitions should be a consecutive 0-based integer sequence"
        raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, message)
    return len(indexes)


def _failed(name: str, refused: Refused) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": None,
        "error_code": refused.code,
        "error_message": refused.message or None,
        "configs": (),
    }
