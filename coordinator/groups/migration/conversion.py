"""Convert groups within their shards: the records to append, and the changes that follow them.

A classic group has a volatile half beside its record, with members that wait for an answer, and
timers; a consumer group is its records, and timers. Who converts a group appends the records that
are given out here in one batch with its own, and says so afterwards: then the volatile half, and
the timers of the classic group, are made or dropped. A reload has neither half-way: it finds the
tombstones of the one kind and the records of the other, in this order.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from coordinator.clock import Clock
from coordinator.groups.classic.group_transition import ClassicRebalanceCause
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupForgotten
from coordinator.groups.consumer.deletion import build_consumer_group_tombstones
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.downgrade import convert_to_classic_group, should_downgrade
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.migration.upgrade import (
    build_upgrade_records,
    check_upgrade,
    create_group_from_records,
)
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import Record

logger = logging.getLogger(__name__)


class GroupConverter:
    """Converts groups in both directions, as far as `policy` allows it."""

    def __init__(
        self,
        policy: MigrationPolicy,
        topics: TopicList,
        classic_membership: ClassicMembership,
        clock: Clock,
    ) -> None:
        self.policy = policy
        self._topics = topics
        self._classic_membership = classic_membership
        self._clock = clock

    # To a consumer group

    def prepare_upgrade(self, group: ClassicGroup) -> tuple[list[Record], ConsumerGroup]:
        """Return the records that turn a classic group into a consumer group, and that group.

        They come before any other. An empty group makes way for an empty one.

        Raises Refused: GROUP_ID_NOT_FOUND and UNKNOWN_SERVER_ERROR (see `migration.upgrade`).
        """
        records: list[Record] = [GroupForgotten(group.group_id)]
        if group.phase is ClassicGroupPhase.EMPTY:
            return records, ConsumerGroup(group.group_id)
        check_upgrade(group, self.policy)
        upgrade_records = build_upgrade_records(group, self._topics)
        return [*records, *upgrade_records], create_group_from_records(
            group.group_id, upgrade_records
        )

    def complete_upgrade(self, shard: GroupShard, group: ClassicGroup) -> None:
        """Drop the classic group once the records of its upgrade are written.

        Its pending requests are answered.
        """
        logger.info("%s is a consumer group from now on", group.group_id)
        self._classic_membership.drop_group(shard, group)

    # To a classic group

    def prepare_downgrade(
        self, group: ConsumerGroup, leaving_members: Collection[ConsumerGroupMember]
    ) -> tuple[list[Record], ClassicGroup] | None:
        """Return the records that turn a group into a classic one as members leave, and that group.

        They take the place of the records that fence these members. None: the group stays what it
        is.
        """
        if not should_downgrade(group, leaving_members, 0, self.policy):
            return None
        classic_group = convert_to_classic_group(
            group, leaving_members, {}, self._topics, self._clock.now_ms()
        )
        return [*build_consumer_group_tombstones(group), classic_group.to_record()], classic_group

    def complete_downgrade(
        self, shard: GroupShard, classic_group: ClassicGroup, *, must_rebalance: bool = True
    ) -> None:
        """Add the classic group once the records of its downgrade are written.

        Its members get their session time-outs, and are told to join again if `must_rebalance`.
        """
        logger.info("%s is a classic group from now on", classic_group.group_id)
        self._classic_membership.adopt_group(
            shard, classic_group, ClassicRebalanceCause.CONVERTED if must_rebalance else None
        )
