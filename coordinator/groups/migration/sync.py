"""SyncGroup of a classic member in a consumer group: it takes what it has in the group.

There is no leader: assignments that it brings are passed over.
Source: classicGroupSyncToConsumerGroup of GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import SyncAnswer
from coordinator.groups.classic.sync import SyncGroup
from coordinator.groups.consumer.facts import MemberState
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.embedded import write_assignment
from coordinator.groups.migration.member import classic_member


def sync(group: ConsumerGroup, command: SyncGroup, topics: TopicList) -> tuple[Member, SyncAnswer]:
    """REBALANCE_IN_PROGRESS (27) as an answer: there is a newer target, for which it is to join.

    While it has something to give up it has joined for that target already: it takes what it keeps.
    Refuses with 25, 82, 22 and 23.
    """
    member, classic = classic_member(
        group, command.member_id, command.instance_id, command.generation
    )
    protocol, metadata = classic.protocols[0]
    for said, known in ((command.protocol_type, PROTOCOL_TYPE), (command.protocol, protocol)):
        if said is not None and said != known:
            raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{said!r}, not {known!r}")
    is_behind = group.target_epoch > member.epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return member, SyncAnswer(code=Code.REBALANCE_IN_PROGRESS)
    return member, SyncAnswer(
        protocol_type=command.protocol_type,
        protocol=command.protocol,
        assignment=write_assignment(member.assigned, topics, metadata),
    )
