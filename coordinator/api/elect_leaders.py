"""Handles ElectLeaders, which never needs an election: there is one replica (KIP-183, KIP-460).

Behaviour: every partition is led by its only replica: ELECTION_NOT_NEEDED for each that is named.
Without a list every topic is returned without partitions, as none needed an election.
Versions: 1 the type of election (0 preferred, 1 unclean), 2 flexible.
Simplifications: none; the time-out is ignored.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused

API_KEY = 43
VERSIONS = range(3)

_TYPES = (0, 1)


def handle_request(request: Any, context: RequestContext) -> Any:
    election_type = getattr(request, "election_type", _TYPES[0])
    if election_type not in _TYPES:
        message = f"Unknown election type {election_type}"
        return _refuse_with_message(request, context, Refused(Code.INVALID_REQUEST, message))
    if request.topic_partitions is None:
        results = [
            {"topic": topic.name, "partition_result": ()} for topic in context.services.topics
        ]
        return context.build_response(replica_election_results=results)
    return context.build_response(
        replica_election_results=[
            _build_topic_result(
                requested,
                [
                    _election_outcome(requested.topic, index, context)
                    for index in requested.partitions
                ],
            )
            for requested in request.topic_partitions
        ]
    )


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every partition, and at the top if the version allows."""
    return _refuse_with_message(request, context, Refused(code))


def _refuse_with_message(request: Any, context: RequestContext, refusal: Refused) -> Any:
    results = [
        _build_topic_result(requested, [refusal] * len(requested.partitions))
        for requested in request.topic_partitions or ()
    ]
    return context.build_response(error_code=refusal.code, replica_election_results=results)


def _election_outcome(name: str, index: int, context: RequestContext) -> Refused:
    topics = context.services.topics
    if topics.get(name) is None:
        return Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if topics.find_partition(name, index) is None:
        return Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    message = "Leader election not needed for topic partition."
    return Refused(Code.ELECTION_NOT_NEEDED, message)


def _build_topic_result(requested: Any, outcomes: list[Refused]) -> dict[str, Any]:
    return {
        "topic": requested.topic,
        "partition_result": [
            {
                "partition_id": index,
                "error_code": outcome.code,
                "error_message": outcome.message or None,
            }
            for index, outcome in zip(requested.partitions, outcomes, strict=True)
        ],
    }
