"""TxnOffsetCommit.

Behaviour: stages offsets in a producer's transaction; they count once it commits. The producer must
have registered the group (AddOffsetsToTxn) and the member must be one of the group's generation.
Versions: v3 flexible, with the member (KIP-447); v4 TRANSACTION_ABORTABLE for a group that isn't
registered, before that INVALID_TXN_STATE; v5 registers the group by itself (transactions v2).
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.committing import offset_of
from coordinator.api.context import Context
from coordinator.api.coordinator_codes import coordinator_code
from coordinator.coordinators import GROUP_TOPIC, Coordinators
from coordinator.errors import Code, Refused
from coordinator.groups.classic.validate import Committer
from coordinator.offsets.commit import CommitOffset, CommitOffsets
from coordinator.shard.decision import Producer

API_KEY = 28
VERSIONS = range(6)


def handle(request: Any, context: Context) -> Any:
    topics = context.broker.topics
    known: list[CommitOffset] = []
    codes: dict[tuple[str, int], Code] = {}
    for topic in request.topics:
        found = topics.get(topic.name)
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if found is None or topics.partition(*key) is None:
                codes[key] = Code.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.append(offset_of(found, partition))
    for offset, code in zip(known, _stage(request, context, known), strict=True):
        codes[offset.topic, offset.partition] = code
    return _reply(request, context, codes)


def refuse(request: Any, context: Context, code: Code) -> Any:
    codes = {
        (topic.name, partition.partition_index): coordinator_code(code)
        for topic in request.topics
        for partition in topic.partitions
    }
    return _reply(request, context, codes)


def _stage(request: Any, context: Context, offsets: list[CommitOffset]) -> list[Code]:
    coordinators: Coordinators = context.broker.coordinators
    if not request.group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")
    try:
        coordinators.transactions.enlist(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            (GROUP_TOPIC, coordinators.groups.partition_of(request.group_id)),
            implicit=context.version >= 5,
        )
    except Refused as refused:
        code = _verification_code(refused.code, context.version)
        raise Refused(code, refused.message) from refused
    committer = Committer(
        generation=getattr(request, "generation_id", -1),
        member_id=getattr(request, "member_id", ""),
        instance_id=getattr(request, "group_instance_id", None),
    )
    producer = Producer(request.producer_id, request.producer_epoch)
    return coordinators.groups.offsets.commit(
        CommitOffsets(request.group_id, offsets, producer),
        committer,
        unknown_group=Code.ILLEGAL_GENERATION,
    )


def _verification_code(code: Code, version: int) -> Code:
    """As Kafka answers when its check against the transaction fails."""
    match code:
        case Code.PRODUCER_FENCED:
            return Code.INVALID_PRODUCER_EPOCH
        case Code.CONCURRENT_TRANSACTIONS:
            return Code.COORDINATOR_LOAD_IN_PROGRESS
        case Code.INVALID_TXN_STATE if version >= 4:
            return Code.TRANSACTION_ABORTABLE
        case _:
            return code


def _reply(request: Any, context: Context, codes: dict[tuple[str, int], Code]) -> Any:
    return context.reply(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": partition.partition_index,
                        "error_code": codes[topic.name, partition.partition_index],
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )
