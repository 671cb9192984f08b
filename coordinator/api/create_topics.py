"""CreateTopics: make topics with a number of partitions and configurations.

Behaviour: each topic is answered for itself, and is on disk when it is. A name that stands in the
request twice gets INVALID_REQUEST, and so does that of the broker's metadata log. A replication
factor other than 1 or -1 is refused: there is one broker. Partitions may be given as a number, as
-1 for the default, or as a replica assignment.
Versions: 4 the defaults (KIP-464), 5 the configuration in the answer (KIP-525), flexible,
7 topic ids (KIP-516).
Simplifications: the time-out is not looked at, a topic is made at once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from coordinator.api.context import Context
from coordinator.api.describing import as_fields, describe_topic
from coordinator.errors import Code, Refused
from coordinator.log.configs import check_configs
from coordinator.log.topics import HIDDEN_TOPICS

API_KEY = 19
VERSIONS = range(2, 8)


def handle(request: Any, context: Context) -> Any:
    times_named = Counter(asked.name for asked in request.topics)
    answers = []
    for asked in request.topics:
        if times_named[asked.name] > 1:
            message = "Duplicate topic name."
            answer = _failed(asked.name, Refused(Code.INVALID_REQUEST, message))
        else:
            answer = _create(asked, context, validate_only=request.validate_only)
        answers.append(answer)
    return context.reply(topics=answers)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every topic."""
    return context.reply(topics=[_failed(asked.name, Refused(code)) for asked in request.topics])


def _create(asked: Any, context: Context, *, validate_only: bool) -> dict[str, Any]:
    topics = context.broker.topics
    try:
        if asked.name in HIDDEN_TOPICS:
            message = f"Creation of internal topic {asked.name} is prohibited."
            raise Refused(Code.INVALID_REQUEST, message)
        given: dict[str, str | None] = {config.name: config.value for config in asked.configs}
        partitions = _partitions(asked, context)
        topics.check_new(asked.name, partitions)
        configs = check_configs(given)
        topic = None if validate_only else topics.create(asked.name, partitions, configs)
    except Refused as refused:
        return _failed(asked.name, refused)
    return {
        "name": asked.name,
        "topic_id": topic.id if topic else None,
        "error_message": None,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [as_fields(each) for each in describe_topic(configs, context.broker.dynamic)],
    }


def _partitions(asked: Any, context: Context) -> int:
    """How many are asked for. Refused if it can't be done with one broker."""
    config = context.broker.config
    if asked.assignments:
        return _assigned(asked, config.node_id)
    if asked.replication_factor not in (1, -1):
        raise Refused(
            Code.INVALID_REPLICATION_FACTOR,
            f"replication factor {asked.replication_factor}: this broker is the only one, use 1",
        )
    return config.num_partitions if asked.num_partitions == -1 else int(asked.num_partitions)


def _assigned(asked: Any, node_id: int) -> int:
    if asked.num_partitions != -1 or asked.replication_factor != -1:
        raise Refused(
            Code.INVALID_REQUEST, "an assignment stands for both numbers: they must be -1"
        )
    if sorted(a.partition_index for a in asked.assignments) != list(range(len(asked.assignments))):
        raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, "partitions must be 0, 1, 2 and so on")
    if any(tuple(a.broker_ids) != (node_id,) for a in asked.assignments):
        raise Refused(Code.INVALID_REPLICA_ASSIGNMENT, f"the only broker is {node_id}")
    return len(asked.assignments)


def _failed(name: str, refused: Refused) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": None,
        "error_code": refused.code,
        "error_message": refused.message or None,
        "configs": (),
    }
