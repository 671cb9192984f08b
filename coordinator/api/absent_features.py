"""Answer the APIs of features that this broker lacks: other brokers, security, quotas.

A row of the table has an API's key and versions, the fields of its answer, and the fields of its
refusal. Most answers are refusals, with Kafka's codes and messages for a single broker without an
authorizer. The router takes a row in the place of an API file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from coordinator.api.absent_feature_answers import (
    Fields,
    allows_replication_factor_change,
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    build_outcome_fields,
    build_quota_result,
    describe_client_quotas,
    describe_user_scram_credentials,
    elect_leaders,
    refuse_election,
    refuse_log_dir_moves,
    refuse_scram_alterations,
    unregister_broker,
)
from coordinator.api.context import BrokerServices, RequestContext
from coordinator.errors import SUCCESS, Code, Outcome, Refused

# Kafka writes -1 ms for a time that doesn't exist.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)


@dataclass(kw_only=True)
class AbsentFeatureApi:
    """Represents an API by the fields of its responses.

    `answer` returns the fields of the answer, or raises Refused; `refuse` returns those of a
    refusal.
    """

    API_KEY: int
    VERSIONS: range
    answer: Callable[[Any, BrokerServices], Fields]
    refuse: Callable[[Any, Outcome], Fields]

    def handle_request(self, request: Any, context: RequestContext) -> Any:
        try:
            fields = self.answer(request, context.services)
        except Refused as refused:
            fields = self.refuse(request, refused.outcome)
        return context.build_response(**fields)

    def build_error_response(self, request: Any, context: RequestContext, code: Code) -> Any:
        return context.build_response(**self.refuse(request, Outcome(code)))


def _create_refusing_answer(
    code: Code, message: str = ""
) -> Callable[[Any, BrokerServices], Fields]:
    """Create the `answer` of an API that refuses every request."""

    def answer(request: Any, services: BrokerServices) -> Fields:
        raise Refused(code, message)

    return answer


_REFUSE_ACLS = _create_refusing_answer(Code.SECURITY_DISABLED, "No Authorizer is configured.")
_REFUSE_TOKENS = _create_refusing_answer(Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
_REFUSE_SASL = _create_refusing_answer(Code.ILLEGAL_SASL_STATE)

ABSENT_FEATURE_APIS: dict[str, AbsentFeatureApi] = {
    # The listener requires no authentication, and the connection is past it already:
    # ILLEGAL_SASL_STATE, as on Kafka's PLAINTEXT listener (KafkaApis.handleSaslHandshakeRequest).
    # Version 1 has SaslAuthenticate follow it (KIP-152).
    "SaslHandshake": AbsentFeatureApi(
        API_KEY=17,
        VERSIONS=range(2),
        answer=_REFUSE_SASL,
        refuse=lambda request, outcome: {"error_code": outcome.code, "mechanisms": ()},
    ),
    # Without an authorizer every client may do anything.
    # Versions: 1 pattern types (KIP-290), 2 flexible, 3 users as resources (KIP-373).
    "DescribeAcls": AbsentFeatureApi(
        API_KEY=29,
        VERSIONS=range(1, 4),
        answer=_create_refusing_answer(
            Code.SECURITY_DISABLED, "No Authorizer is configured on the broker"
        ),
        refuse=lambda request, outcome: {**build_outcome_fields(outcome), "resources": ()},
    ),
    # Versions: as of DescribeAcls.
    "CreateAcls": AbsentFeatureApi(
        API_KEY=30,
        VERSIONS=range(1, 4),
        answer=_REFUSE_ACLS,
        refuse=lambda request, outcome: {
            "results": [build_outcome_fields(outcome) for _ in request.creations]
        },
    ),
    # Versions: as of DescribeAcls.
    "DeleteAcls": AbsentFeatureApi(
        API_KEY=31,
        VERSIONS=range(1, 4),
        answer=_REFUSE_ACLS,
        refuse=lambda request, outcome: {
            "filter_results": [
                {**build_outcome_fields(outcome), "matching_acls": ()} for _ in request.filters
            ]
        },
    ),
    # The one data directory is where a partition is already (KIP-113); any other is
    # LOG_DIR_NOT_FOUND. Versions: 2 flexible.
    "AlterReplicaLogDirs": AbsentFeatureApi(
        API_KEY=34,
        VERSIONS=range(1, 3),
        answer=alter_replica_log_dirs,
        refuse=refuse_log_dir_moves,
    ),
    # As SaslHandshake (KafkaApis.handleSaslAuthenticateRequest).
    # Versions: 1 the session's lifetime (KIP-368), 2 flexible.
    "SaslAuthenticate": AbsentFeatureApi(
        API_KEY=36,
        VERSIONS=range(3),
        answer=_REFUSE_SASL,
        refuse=lambda request, outcome: {
            "error_code": outcome.code,
            "error_message": "SaslAuthenticate request received after successful authentication",
            "auth_bytes": b"",
        },
    ),
    # Tokens aren't allowed without authentication, as with Kafka. The owner is the user of every
    # connection, `User:ANONYMOUS`. Versions: 2 flexible, 3 the owner in the request (KIP-373).
    "CreateDelegationToken": AbsentFeatureApi(
        API_KEY=38,
        VERSIONS=range(1, 4),
        answer=_REFUSE_TOKENS,
        refuse=lambda request, outcome: {
            "error_code": outcome.code,
            "principal_type": "User",
            "principal_name": "ANONYMOUS",
            "token_requester_principal_type": "User",
            "token_requester_principal_name": "ANONYMOUS",
            "issue_timestamp": _NEVER,
            "expiry_timestamp": _NEVER,
            "max_timestamp": _NEVER,
            "token_id": "",
            "hmac": b"",
        },
    ),
    # Versions: 2 flexible.
    "RenewDelegationToken": AbsentFeatureApi(
        API_KEY=39,
        VERSIONS=range(1, 3),
        answer=_REFUSE_TOKENS,
        refuse=lambda request, outcome: {"error_code": outcome.code, "expiry_timestamp": _NEVER},
    ),
    # Versions: 2 flexible.
    "ExpireDelegationToken": AbsentFeatureApi(
        API_KEY=40,
        VERSIONS=range(1, 3),
        answer=_REFUSE_TOKENS,
        refuse=lambda request, outcome: {"error_code": outcome.code, "expiry_timestamp": _NEVER},
    ),
    # Versions: 2 flexible, 3 who asked for the token (KIP-373).
    "DescribeDelegationToken": AbsentFeatureApi(
        API_KEY=41,
        VERSIONS=range(1, 4),
        answer=_REFUSE_TOKENS,
        refuse=lambda request, outcome: {"error_code": outcome.code, "tokens": ()},
    ),
    # A partition is led by its only replica (KIP-183, KIP-460): ELECTION_NOT_NEEDED for each that
    # is named; without a list every topic is returned, without partitions. The time-out is ignored.
    # Versions: 1 the type of election, 2 flexible.
    "ElectLeaders": AbsentFeatureApi(
        API_KEY=43, VERSIONS=range(3), answer=elect_leaders, refuse=refuse_election
    ),
    # This broker alone is where every partition is already (KIP-455): NONE, and nothing happens.
    # Any other list of brokers gets INVALID_REPLICA_ASSIGNMENT, taking back a reassignment (no
    # list) NO_REASSIGNMENT_IN_PROGRESS. The time-out is ignored.
    # Versions: 1 whether the replication factor may change (KIP-860); it never does.
    "AlterPartitionReassignments": AbsentFeatureApi(
        API_KEY=45,
        VERSIONS=range(2),
        answer=alter_partition_reassignments,
        refuse=lambda request, outcome: {
            **build_outcome_fields(outcome),
            "allow_replication_factor_change": allows_replication_factor_change(request),
            "responses": (),
        },
    ),
    # No partition is ever being reassigned (KIP-455).
    "ListPartitionReassignments": AbsentFeatureApi(
        API_KEY=46,
        VERSIONS=range(1),
        answer=lambda request, services: {**build_outcome_fields(SUCCESS), "topics": ()},
        refuse=lambda request, outcome: {**build_outcome_fields(outcome), "topics": ()},
    ),
    # There are no quotas. A filter with an unknown entity type, the same entity type twice, or an
    # unknown match type is refused. Versions: 1 flexible.
    "DescribeClientQuotas": AbsentFeatureApi(
        API_KEY=48,
        VERSIONS=range(2),
        answer=describe_client_quotas,
        refuse=lambda request, outcome: {**build_outcome_fields(outcome), "entries": None},
    ),
    # Setting a quota is refused with INVALID_REQUEST; removing one, which there isn't, succeeds.
    # Versions: 1 flexible.
    "AlterClientQuotas": AbsentFeatureApi(
        API_KEY=49,
        VERSIONS=range(2),
        answer=alter_client_quotas,
        refuse=lambda request, outcome: {
            "entries": [build_quota_result(entry, outcome) for entry in request.entries]
        },
    ),
    # There are no credentials (KIP-554): no results without a list of users, RESOURCE_NOT_FOUND for
    # each user that is named, DUPLICATE_RESOURCE for one that is named twice.
    "DescribeUserScramCredentials": AbsentFeatureApi(
        API_KEY=50,
        VERSIONS=range(1),
        answer=describe_user_scram_credentials,
        refuse=lambda request, outcome: {**build_outcome_fields(outcome), "results": ()},
    ),
    # UNSUPPORTED_SASL_MECHANISM for credentials that are to be kept, RESOURCE_NOT_FOUND for ones
    # that are to be deleted. Each user is answered once.
    "AlterUserScramCredentials": AbsentFeatureApi(
        API_KEY=51,
        VERSIONS=range(1),
        answer=alter_user_scram_credentials,
        refuse=refuse_scram_alterations,
    ),
    # This broker is the only one (KIP-500): BROKER_ID_NOT_REGISTERED for any other, INVALID_REQUEST
    # for itself, where Kafka unregisters a running broker, which then registers again.
    "UnregisterBroker": AbsentFeatureApi(
        API_KEY=64,
        VERSIONS=range(1),
        answer=unregister_broker,
        refuse=lambda request, outcome: build_outcome_fields(outcome),
    ),
}
