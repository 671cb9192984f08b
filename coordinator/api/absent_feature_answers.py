"""Build answers about features that this broker lacks, where they depend on the request.

The functions return the fields of the response, or raise Refused; `absent_features` says for which
APIs they do, and how these are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from coordinator.api.context import BrokerServices
from coordinator.api.replica_assignment import check_replica_assignment
from coordinator.errors import SUCCESS, Code, Outcome, Refused

if TYPE_CHECKING:
    from kio.schema.alter_client_quotas.v1 import request as client_quotas
    from kio.schema.alter_partition_reassignments.v1 import request as reassignments
    from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
    from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
    from kio.schema.describe_client_quotas.v1.request import DescribeClientQuotasRequest
    from kio.schema.describe_user_scram_credentials.v0.request import (
        DescribeUserScramCredentialsRequest,
    )
    from kio.schema.elect_leaders.v2 import request as elections
    from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest

# The fields of a response, or of a struct in it, by name.
Fields = dict[str, Any]

_QUOTA_ENTITIES = ("user", "client-id", "ip")
_QUOTA_MATCHES = (0, 1, 2)  # exact, default, any
_ELECTION_TYPES = (0, 1)  # preferred, unclean


def build_outcome_fields(outcome: Outcome) -> Fields:
    return {"error_code": outcome.code, "error_message": outcome.message or None}


# Users' credentials: there is no authentication, so they would be kept for nothing.


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, services: BrokerServices
) -> Fields:
    times_named = Counter(user.name for user in request.users or ())
    results = []
    for name, times in times_named.items():
        code = Code.RESOURCE_NOT_FOUND
        message = "Attempt to describe a user credential that does not exist"
        if times > 1:
            code = Code.DUPLICATE_RESOURCE
            message = (
                "Cannot describe SCRAM credentials for the same user twice in a single request"
            )
        outcome = build_outcome_fields(Outcome(code, f"{message}: {name}"))
        results.append({"user": name, **outcome, "credential_infos": ()})
    return {"error_message": "", "results": results}


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, services: BrokerServices
) -> Fields:
    message = "Attempt to delete a user credential that does not exist"
    missing = Outcome(Code.RESOURCE_NOT_FOUND, message)
    refused = Outcome(
        Code.UNSUPPORTED_SASL_MECHANISM,
        "This broker authenticates no one: it takes no credentials.",
    )
    outcomes = {each.name: missing for each in request.deletions}
    outcomes |= {each.name: refused for each in request.upsertions}
    return _build_user_results(outcomes)


def refuse_scram_alterations(request: AlterUserScramCredentialsRequest, outcome: Outcome) -> Fields:
    names = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    return _build_user_results(dict.fromkeys(names, outcome))


def _build_user_results(outcomes: dict[str, Outcome]) -> Fields:
    return {
        "results": [
            {"user": name, **build_outcome_fields(outcome)} for name, outcome in outcomes.items()
        ]
    }


# Quotas: one that is stored but not enforced would mislead.


def describe_client_quotas(
    request: DescribeClientQuotasRequest, services: BrokerServices
) -> Fields:
    seen: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if kind not in _QUOTA_ENTITIES:
            raise Refused(Code.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if kind in seen:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            raise Refused(Code.INVALID_REQUEST, message)
        if component.match_type not in _QUOTA_MATCHES:
            message = f"Unknown match type {component.match_type}"
            raise Refused(Code.INVALID_REQUEST, message)
        seen.add(kind)
    return {"error_message": "", "entries": ()}


def alter_client_quotas(
    request: client_quotas.AlterClientQuotasRequest, services: BrokerServices
) -> Fields:
    """Refuse every quota that a request sets; accept removals, since there is nothing to remove."""
    refused = Outcome(Code.INVALID_REQUEST, "This broker throttles no one: it takes no quotas.")
    return {
        "entries": [
            build_quota_result(entry, SUCCESS if all(op.remove for op in entry.ops) else refused)
            for entry in request.entries
        ]
    }


def build_quota_result(entry: client_quotas.EntryData, outcome: Outcome) -> Fields:
    return {
        **build_outcome_fields(outcome),
        "entity": [
            {"entity_type": part.entity_type, "entity_name": part.entity_name}
            for part in entry.entity
        ],
    }


# Other brokers, to which partitions or their leadership could move, and other directories.


def unregister_broker(request: UnregisterBrokerRequest, services: BrokerServices) -> Fields:
    if request.broker_id == services.config.node_id:
        message = f"Broker ID {request.broker_id} is this broker, the only one"
        raise Refused(Code.INVALID_REQUEST, message)
    message = f"Broker ID {request.broker_id} is not currently registered"
    raise Refused(Code.BROKER_ID_NOT_REGISTERED, message)


def elect_leaders(request: elections.ElectLeadersRequest, services: BrokerServices) -> Fields:
    election_type = getattr(request, "election_type", _ELECTION_TYPES[0])
    if election_type not in _ELECTION_TYPES:
        raise Refused(Code.INVALID_REQUEST, f"Unknown election type {election_type}")
    if request.topic_partitions is None:
        results = [{"topic": topic.name, "partition_result": ()} for topic in services.topics]
        return {"replica_election_results": results}
    return {
        "replica_election_results": [
            _build_election_result(
                requested,
                (
                    _build_election_outcome(requested.topic, index, services)
                    for index in requested.partitions
                ),
            )
            for requested in request.topic_partitions
        ]
    }


def refuse_election(request: elections.ElectLeadersRequest, outcome: Outcome) -> Fields:
    results = [
        _build_election_result(requested, [outcome] * len(requested.partitions))
        for requested in request.topic_partitions or ()
    ]
    return {"error_code": outcome.code, "replica_election_results": results}


def _build_election_outcome(name: str, index: int, services: BrokerServices) -> Outcome:
    if services.topics.get(name) is None:
        return Outcome(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if services.topics.find_partition(name, index) is None:
        return Outcome(Code.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    message = "Leader election not needed for topic partition."
    return Outcome(Code.ELECTION_NOT_NEEDED, message)


def _build_election_result(
    requested: elections.TopicPartitions, outcomes: Iterable[Outcome]
) -> Fields:
    return {
        "topic": requested.topic,
        "partition_result": [
            {"partition_id": index, **build_outcome_fields(outcome)}
            for index, outcome in zip(requested.partitions, outcomes, strict=True)
        ],
    }


def alter_partition_reassignments(
    request: reassignments.AlterPartitionReassignmentsRequest, services: BrokerServices
) -> Fields:
    responses = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": partition.partition_index,
                    **build_outcome_fields(
                        _build_reassignment_outcome(topic.name, partition, services)
                    ),
                }
                for partition in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {
        "allow_replication_factor_change": allows_replication_factor_change(request),
        "error_message": None if responses else "",
        "responses": responses,
    }


def allows_replication_factor_change(
    request: reassignments.AlterPartitionReassignmentsRequest,
) -> bool:
    return bool(getattr(request, "allow_replication_factor_change", True))


def _build_reassignment_outcome(
    name: str, partition: reassignments.ReassignablePartition, services: BrokerServices
) -> Outcome:
    index = partition.partition_index
    if services.topics.get(name) is None:
        message = f"Unable to find a topic named {name}."
        return Outcome(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    if services.topics.find_partition(name, index) is None:
        message = f"Unable to find partition {name}:{index}."
        return Outcome(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    if partition.replicas is None:
        return Outcome(Code.NO_REASSIGNMENT_IN_PROGRESS)
    try:
        check_replica_assignment(partition.replicas, services.config.node_id)
    except Refused as refused:
        return refused.outcome
    return SUCCESS


def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, services: BrokerServices) -> Fields:
    """Return a code for each partition; for one that is named twice the last one counts."""
    own = str(services.config.data_dir.absolute())
    codes: dict[str, dict[int, Code]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = Code.LOG_DIR_NOT_FOUND
                if directory.path == own:
                    known = services.topics.find_partition(topic.name, index) is not None
                    code = Code.NONE if known else Code.UNKNOWN_TOPIC_OR_PARTITION
                codes.setdefault(topic.name, {})[index] = code
    return _build_log_dir_results(codes)


def refuse_log_dir_moves(request: AlterReplicaLogDirsRequest, outcome: Outcome) -> Fields:
    """Return the code for each partition; topics that are named without any are listed too."""
    codes: dict[str, dict[int, Code]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            codes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, outcome.code))
    return _build_log_dir_results(codes)


def _build_log_dir_results(codes: dict[str, dict[int, Code]]) -> Fields:
    return {
        "results": [
            {
                "topic_name": name,
                "partitions": [
                    {"partition_index": index, "error_code": code} for index, code in each.items()
                ],
            }
            for name, each in codes.items()
        ]
    }
