"""Handle CreatePartitions, which adds partitions to topics.

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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.replica_assignment import check_replica_assignment
from coordinator.errors import SUCCESS, Code, Outcome, Refused

if TYPE_CHECKING:
    from kio.schema.create_partitions.v3.request import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )
    from kio.schema.create_partitions.v3.response import CreatePartitionsResponse

API_KEY = 37
VERSIONS = range(4)


def handle_request(
    request: CreatePartitionsRequest, context: RequestContext[CreatePartitionsResponse]
) -> CreatePartitionsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times_named[topic.name] > 1:
                raise Refused(Code.INVALID_REQUEST, "Duplicate topic name.")
            _check_topic(topic, context)
            if not request.validate_only:
                context.services.topics.add_partitions(topic.name, topic.count)
            results.append(_build_topic_result(topic, SUCCESS))
        except Refused as refused:
            results.append(_build_topic_result(topic, refused.outcome))
    return context.build_response(results=results)


def build_error_response(
    request: CreatePartitionsRequest, context: RequestContext[CreatePartitionsResponse], code: Code
) -> CreatePartitionsResponse:
    """Return a response with `code` for every topic."""
    return context.build_response(
        results=[_build_topic_result(asked, Outcome(code)) for asked in request.topics]
    )


def _check_topic(requested: CreatePartitionsTopic, context: RequestContext) -> None:
    topic = context.services.topics.get(requested.name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
    now = len(topic.partitions)
    if requested.count == now:
        raise Refused(Code.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if requested.count < now:
        raise Refused(
            Code.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {now} partition(s); {requested.count} would not "
            "be an increase.",
        )
    if requested.assignments is not None:
        _check_assignments(requested.assignments, requested.count - now, context)


def _check_assignments(
    assignments: Sequence[CreatePartitionsAssignment], added_count: int, context: RequestContext
) -> None:
    if len(assignments) != added_count:
        raise Refused(
            Code.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added_count} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified.",
        )
    for assignment in assignments:
        check_replica_assignment(assignment.broker_ids, context.services.config.node_id)


def _build_topic_result(requested: CreatePartitionsTopic, outcome: Outcome) -> dict[str, Any]:
    return {
        "name": requested.name,
        "error_code": outcome.code,
        "error_message": outcome.message or None,
    }
