"""Handles ElectLeaders, which never needs an election: there is one replica (KIP-183, KIP-460).

Behaviour: every partition is led by its only replica: ELECTION_NOT_NEEDED for each that is named.
Without a list every topic is returned without partitions, as none needed an election.
Versions: 1 the type of election (0 preferred, 1 unclean), 2 flexible.
Simplifications: none; the time-out is ignored.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 43
VERSIONS = range(3)

_TYPES = (0, 1)


def handle(request: Any, context: Context) -> Any:
    election_type = getattr(request, "election_type", _TYPES[0])
    if election_type not in _TYPES:
        message = f"Unknown election type {election_type}"
        return _refuse(request, context, Refused(Code.INVALID_REQUEST, message))
    if request.topic_partitions is None:
        results = [{"topic": topic.name, "partition_result": ()} for topic in context.broker.topics]
        return context.reply(replica_election_results=results)
    return context.reply(
        replica_election_results=[
            _result(
                requested,
                [_outcome(requested.topic, index, context) for index in requested.partitions],
            )
            for requested in request.topic_partitions
        ]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every partition, and at the top if the version allows."""
    return _refuse(request, context, Refused(code))


def _refuse(request: Any, context: Context, refused: Refused) -> Any:
    results = [
        _result(requested, [refused] * len(requested.partitions))
        for requested in request.topic_partitions or ()
    ]
    return context.reply(error_code=refused.code, replica_election_results=results)


def _outcome(name: str, index: int, context: Context) -> Refused:
    topics = context.broker.topics
    if topics.get(name) is None:
        return Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if topics.partition(name, index) is None:
        return Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    message = "Leader election not needed for topic partition."
    return Refused(Code.ELECTION_NOT_NEEDED, message)


def _result(asked: Any, outcomes: list[Refused]) -> dict[str, Any]:
    return {
        "topic": asked.topic,
        "partition_result": [
            {
                "partition_id": index,
                "error_code": outcome.code,
                "error_message": outcome.message or None,
            }
            for index, outcome in zip(asked.partitions, outcomes, strict=True)
        ],
    }
