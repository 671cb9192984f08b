"""Handles CreatePartitions, which adds partitions to topics.

Behaviour: each topic has a result of its own; its new partitions are on disk, and can be written
to, when that is sent. A name that stands in the request twice is answered once, with
INVALID_REQUEST. A number that is no increase gets INVALID_PARTITIONS; an assignment must name this
broker for each partition that is added. `validate_only` changes nothing.
Versions: 2 flexible, 3 quota errors (KIP-599; there are no quotas).
Simplifications: the time-out is ignored. Kafka adds partitions to internal topics and no longer
finds their content, because groups and transactions are located by the number of partitions; here
that is refused (INVALID_TOPIC_EXCEPTION).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from coordinator.api.assigning import check_assignment
from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 37
VERSIONS = range(4)


def handle(request: Any, context: Context) -> Any:
    times_named = Counter(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times_named[topic.name] > 1:
                raise Refused(Code.INVALID_REQUEST, "Duplicate topic name.")
            _check(topic, context)
            if not request.validate_only:
                context.broker.topics.add_partitions(topic.name, topic.count)
            results.append(_answer(topic, Refused(Code.NONE)))
        except Refused as refused:
            results.append(_answer(topic, refused))
    return context.reply(results=results)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every topic."""
    return context.reply(results=[_answer(asked, Refused(code)) for asked in request.topics])


def _check(asked: Any, context: Context) -> None:
    topic = context.broker.topics.get(asked.name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
    now = len(topic.partitions)
    if asked.count == now:
        raise Refused(Code.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if asked.count < now:
        raise Refused(
            Code.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {now} partition(s); {asked.count} would not be "
            "an increase.",
        )
    if asked.assignments is not None:
        _check_assignments(asked, asked.count - now, context)


def _check_assignments(asked: Any, added: int, context: Context) -> None:
    if len(asked.assignments) != added:
        raise Refused(
            Code.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        check_assignment(assignment.broker_ids, context.broker.config.node_id)


def _answer(asked: Any, refused: Refused) -> dict[str, Any]:
    return {
        "name": asked.name,
        "error_code": refused.code,
        "error_message": refused.message or None,
    }
