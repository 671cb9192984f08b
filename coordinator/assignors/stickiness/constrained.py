"""Assign by quotas where all members are subscribed to the same topics.

Theory of operation. With p partitions and n members each gets p // n, the base, and p % n of them
one more, the ceiling. First members keep what they owned, up to the ceiling as long as somebody may
still have it, else up to the base. Then what is free is dealt round and round to those below the
base, in order of their ids; when all are at the base, each in turn gets the one more. Where racks
matter, members keep only what is near, and partitions that few members are near to are dealt first,
to members near them.

A partition that goes from one member to another is noted: a cooperative member must revoke it
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from coordinator.assignors.stickiness.claims import ResolvedOwnership
from coordinator.assignors.stickiness.racks import RackInfo
from coordinator.assignors.subscriptions import (
    Assignment,
    MovingPartitions,
    TopicPartition,
    Topics,
)

MemberPartitionCount: TypeAlias = int
RemainingPartitions: TypeAlias = list[TopicPartition]


def assign_constrained(
    topics: Topics, racks: RackInfo, ownership: ResolvedOwnership
) -> tuple[Assignment, MovingPartitions]:
    """Return the partitions of each member, and those that another may have to revoke first."""
    dealer = _QuotaDealer(topics, racks, ownership)
    for member, partitions in ownership.by_member.items():
        dealer.keep_owned_where_allowed(member, partitions)
    dealer.below_base.sort()
    dealer.at_base.sort()
    kept = {
        partition
        for member_partitions in dealer.assignment.values()
        for partition in member_partitions
    }
    unassigned = [
        (topic, number)
        for topic in sorted(topics)
        for number in range(len(topics[topic]))
        if (topic, number) not in kept
    ]
    if racks:
        unassigned = dealer.deal_to_near_members(racks.sort_fewest_near_first(unassigned))
    dealer.deal_in_turn(unassigned)
    return dealer.assignment, dealer.moving


class _QuotaDealer:
    """Deals partitions to members up to their quotas."""

    def __init__(self, topics: Topics, racks: RackInfo, ownership: ResolvedOwnership) -> None:
        self._racks = racks
        self._disputed = ownership.disputed
        self._released: dict[TopicPartition, str] = {}
        self._base_quota, self._larger_quota_count = divmod(
            sum(map(len, topics.values())), len(ownership.by_member)
        )
        self._ceiling_quota = self._base_quota + (self._larger_quota_count > 0)
        self.assignment: Assignment = {member: [] for member in ownership.by_member}
        self.moving: dict[TopicPartition, str] = {}
        self.below_base: list[str] = []  # members that have less than the base
        self.at_base: list[str] = []  # members that may get one more than the base

    def keep_owned_where_allowed(self, member: str, partitions: Sequence[TopicPartition]) -> None:
        """Let a member keep owned partitions up to its quota, none that is far or disputed."""
        near = []
        for partition in sorted(partitions, key=lambda each: (each[1], each[0])):
            if self._racks.is_far(member, partition):
                self._released[partition] = member
            elif partition not in self._disputed:
                near.append(partition)
        quota = self._base_quota
        if len(near) < self._base_quota:
            self.below_base.append(member)
        elif len(near) >= self._ceiling_quota and self._larger_quota_count:
            quota = self._ceiling_quota
            self._use_up_larger_quota()
        elif self._larger_quota_count:
            self.at_base.append(member)
        self.assignment[member] = near[:quota]
        for partition in near[quota:]:
            self._released[partition] = member

    def deal_to_near_members(self, unassigned: Sequence[TopicPartition]) -> RemainingPartitions:
        """Deal partitions to near members with room in their quota; return those left over."""
        rest = []
        turn = 0
        for partition in unassigned:
            index = self._racks.find_next_near(partition, self.below_base, turn)
            if index is not None:
                member = self.below_base[index]
                if self._assign_and_note_move(partition, member) >= self._base_quota:
                    del self.below_base[index]
                    if self._larger_quota_count:
                        self.at_base.append(member)
                else:
                    index += 1
                turn = index % len(self.below_base) if self.below_base else 0
                continue
            index = self._racks.find_next_near(partition, self.at_base, 0)
            if index is None:
                rest.append(partition)
                continue
            self._assign_and_note_move(partition, self.at_base.pop(index))
            self._use_up_larger_quota()
        return rest

    def deal_in_turn(self, unassigned: Sequence[TopicPartition]) -> None:
        """Deal partitions in turn to members below the base quota, then to those that are at it."""
        turn = 0
        for partition in unassigned:
            if not self.below_base:
                self._assign_and_note_move(partition, self.at_base.pop(0))
                continue
            turn %= len(self.below_base)
            member = self.below_base[turn]
            if self._assign_and_note_move(partition, member) == self._base_quota:
                del self.below_base[turn]
                self.at_base.append(member)
                # The next member has moved to this index; after the last one, as in Kafka,
                # it begins anew.
            else:
                turn += 1

    def _assign_and_note_move(self, partition: TopicPartition, member: str) -> MemberPartitionCount:
        """Assign a partition, note whether it moves, and return the member's partition count."""
        member_partitions = self.assignment[member]
        member_partitions.append(partition)
        if self._released.get(partition, member) != member or partition in self._disputed:
            self.moving[partition] = member
        return len(member_partitions)

    def _use_up_larger_quota(self) -> None:
        self._larger_quota_count -= 1
        if not self._larger_quota_count:
            self.at_base.clear()
