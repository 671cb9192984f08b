"""Handle TxnOffsetCommit, which adds a group's offsets to a producer's transaction.

Behaviour: the offsets are pending until the producer's transaction commits. The producer must have
registered the group (AddOffsetsToTxn) and the member must be one of the group's generation. A
request without an existing partition reaches neither the group nor the transaction.
Versions: below v2 COORDINATOR_NOT_AVAILABLE where newer clients are told that the group is being
loaded, which may crash an old one (KAFKA-7296); v3 flexible, with the member (KIP-447); v4
TRANSACTION_ABORTABLE for a group that isn't registered, before that INVALID_TXN_STATE; v5 registers
the group by itself (transactions v2).
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.requested_offsets import RequestedOffsets, build_refused_topics
from coordinator.coordinators import GROUP_TOPIC, Coordinators
from coordinator.errors import Code, Refused
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.shard.decision import TransactionalProducer

if TYPE_CHECKING:
    from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest
    from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse

API_KEY = 28
VERSIONS = range(6)


def handle_request(
    request: TxnOffsetCommitRequest, context: RequestContext[TxnOffsetCommitResponse]
) -> TxnOffsetCommitResponse:
    topics = context.services.topics
    requested = RequestedOffsets(
        request.topics,
        [topics.get(topic.name) for topic in request.topics],
        Code.UNKNOWN_TOPIC_OR_PARTITION,
    )
    codes: list[Code] = []
    if requested.offsets:
        try:
            codes = _stage_offsets(request, context, requested.offsets)
        except Refused as error:
            codes = requested.build_refusal_codes(
                _translate_loading_code_for_old_clients(error.code, context.version)
            )
    return context.build_response(topics=requested.build_topics(codes))


def build_error_response(
    request: TxnOffsetCommitRequest, context: RequestContext[TxnOffsetCommitResponse], code: Code
) -> TxnOffsetCommitResponse:
    return context.build_response(
        topics=build_refused_topics(request.topics, translate_coordinator_code(code))
    )


def _stage_offsets(
    request: TxnOffsetCommitRequest, context: RequestContext, offsets: Collection[OffsetToCommit]
) -> list[Code]:
    coordinators: Coordinators = context.services.coordinators
    if not request.group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")
    try:
        coordinators.transactions.verify_partition(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            (GROUP_TOPIC, coordinators.groups.partition_of(request.group_id)),
            adds_partition=context.version >= 5,
        )
    except Refused as error:
        code = _translate_verification_code(error.code, context.version)
        raise Refused(code, error.message) from error
    committer = CommittingMember(
        generation=getattr(request, "generation_id", -1),
        member_id=getattr(request, "member_id", ""),
        instance_id=getattr(request, "group_instance_id", None),
    )
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    return coordinators.groups.offsets.commit_offsets(
        OffsetCommitCommand(request.group_id, offsets, producer),
        committer,
        unknown_group_code=Code.ILLEGAL_GENERATION,
    )


def _translate_loading_code_for_old_clients(code: Code, version: int) -> Code:
    """Translate the code of a group that is being loaded to one that old clients can take."""
    if version < 2 and code is Code.COORDINATOR_LOAD_IN_PROGRESS:
        return Code.COORDINATOR_NOT_AVAILABLE
    return code


def _translate_verification_code(code: Code, version: int) -> Code:
    """Translate a failed check against the transaction to the code that Kafka answers."""
    match code:
        case Code.PRODUCER_FENCED:
            return Code.INVALID_PRODUCER_EPOCH
        case Code.CONCURRENT_TRANSACTIONS:
            return Code.COORDINATOR_LOAD_IN_PROGRESS
        case Code.INVALID_TXN_STATE if version >= 4:
            return Code.TRANSACTION_ABORTABLE
        case _:
            return code
