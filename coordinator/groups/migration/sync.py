"""Decide SyncGroup of a classic member in a consumer group: it gets its current assignment.

There is no leader: assignments that it brings are passed over.
Source: classicGroupSyncToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import SyncAnswer
from coordinator.groups.classic.sync import SyncGroup
from coordinator.groups.consumer.effects import CancelMemberTimer, ConsumerTimer, SetMemberTimer
from coordinator.groups.consumer.record_types import MemberState, Record
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.embedded_protocol import encode_member_assignment
from coordinator.groups.migration.member import build_join_timer_effect, require_classic_member
from coordinator.shard.decision import Decision


def sync_classic_member(
    group: ConsumerGroup, command: SyncGroup, topics: TopicList
) -> Decision[Record, SyncAnswer]:
    """Decide the SyncGroup of a classic member in a consumer group; it writes no record.

    The answer is REBALANCE_IN_PROGRESS if there is a newer target, for which it is to join. While
    it has something to revoke it has joined for that target already: it takes what it keeps.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL.
    """
    member, classic = require_classic_member(
        group, command.member_id, command.instance_id, command.generation
    )
    protocol, metadata = classic.protocols[0]
    for requested, actual in ((command.protocol_type, PROTOCOL_TYPE), (command.protocol, protocol)):
        if requested is not None and requested != actual:
            raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{requested!r}, not {actual!r}")
    is_behind = group.target_epoch > member.epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return Decision(
            (), SyncAnswer(code=Code.REBALANCE_IN_PROGRESS), (build_join_timer_effect(member),)
        )
    answer = SyncAnswer(
        protocol_type=command.protocol_type,
        protocol=command.protocol,
        assignment=encode_member_assignment(member.assigned, topics, metadata),
    )
    effects = (
        CancelMemberTimer(ConsumerTimer.SYNC, member.member_id),
        SetMemberTimer(ConsumerTimer.SESSION, member.member_id, classic.session_timeout_ms),
    )
    return Decision((), answer, effects)
