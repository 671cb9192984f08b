"""Handles AlterPartitionReassignments, which finds no other broker to move to (KIP-455).

Behaviour: this broker alone is where every partition is already: NONE, and nothing happens. Any
other list of brokers gets INVALID_REPLICA_ASSIGNMENT, taking back a reassignment (no list)
NO_REASSIGNMENT_IN_PROGRESS.
Versions: 1 whether the replication factor may change (KIP-860); it never does.
Simplifications: the time-out is ignored.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.api.replica_assignment import check_replica_assignment
from coordinator.errors import Code, Refused

API_KEY = 45
VERSIONS = range(2)


def handle_request(request: Any, context: RequestContext) -> Any:
    responses = [
        {
            "name": topic.name,
            "partitions": [
                _answer_partition(topic.name, asked, context) for asked in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return context.build_response(
        allow_replication_factor_change=_may_change_replication_factor(request),
        error_message=None if responses else "",
        responses=responses,
    )


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(
        allow_replication_factor_change=_may_change_replication_factor(request),
        error_code=code,
        error_message=None,
        responses=(),
    )


def _may_change_replication_factor(request: Any) -> bool:
    return bool(getattr(request, "allow_replication_factor_change", True))


def _answer_partition(name: str, partition: Any, context: RequestContext) -> dict[str, Any]:
    outcome = Refused(Code.NONE)
    try:
        _check_reassignment(name, partition, context)
    except Refused as refused:
        outcome = refused
    return {
        "partition_index": partition.partition_index,
        "error_code": outcome.code,
        "error_message": outcome.message or None,
    }


def _check_reassignment(name: str, partition: Any, context: RequestContext) -> None:
    topics = context.services.topics
    if topics.get(name) is None:
        message = f"Unable to find a topic named {name}."
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    if topics.find_partition(name, partition.partition_index) is None:
        message = f"Unable to find partition {name}:{partition.partition_index}."
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    if partition.replicas is None:
        raise Refused(Code.NO_REASSIGNMENT_IN_PROGRESS)
    check_replica_assignment(partition.replicas, context.services.config.node_id)
