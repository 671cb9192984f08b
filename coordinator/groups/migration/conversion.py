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
from coordinator.groups.classic.draft import Cause
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.state import Group, GroupForgotten, Phase
from coordinator.groups.consumer.forget import forget
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.downgrade import downgrade, is_to_downgrade
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.migration.upgrade import check_upgrade, outcome, upgrade
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import Record

logger = logging.getLogger(__name__)


class Conversions:
    """Converts groups in both directions, as far as `policy` allows it."""

    def __init__(
        self,
        policy: MigrationPolicy,
        topics: TopicList,
        classic: ClassicMembership,
        clock: Clock,
    ) -> None:
        self.policy = policy
        self._topics = topics
        self._classic = classic
        self._clock = clock

    # To a consumer group

    def upgrade(self, group: Group) -> tuple[list[Record], ConsumerGroup]:
        """Return the records that turn a classic group into a consumer group, and that group.

        They come before any other. An empty group makes way for an empty one.

        Raises Refused: GROUP_ID_NOT_FOUND and UNKNOWN_SERVER_ERROR (see `migration.upgrade`).
        """
        records: list[Record] = [GroupForgotten(group.group_id)]
        if group.phase is Phase.EMPTY:
            return records, ConsumerGroup(group.group_id)
        check_upgrade(group, self.policy)
        upgrade_records = upgrade(group, self._topics)
        return [*records, *upgrade_records], outcome(group.group_id, upgrade_records)

    def upgraded(self, shard: GroupShard, group: Group) -> None:
        """Drop the classic group once the records of its upgrade are written.

        Its pending requests are answered.
        """
        logger.info("%s is a consumer group from now on", group.group_id)
        self._classic.drop(shard, group)

    # To a classic group

    def downgrade(
        self, group: ConsumerGroup, going: Collection[Member]
    ) -> tuple[list[Record], Group] | None:
        """Return the records that turn a group into a classic one as members leave, and that group.

        They take the place of the records that fence these members. None: the group stays what it
        is.
        """
        if not is_to_downgrade(group, going, 0, self.policy):
            return None
        classic_group = downgrade(group, going, {}, self._topics, self._clock.now_ms())
        return [*forget(group), classic_group.saved()], classic_group

    def downgraded(self, shard: GroupShard, made: Group, *, rebalances: bool = True) -> None:
        """Add the classic group once the records of its downgrade are written.

        Its members get their session time-outs, and are told to join again if `must_rebalance`.
        """
        logger.info("%s is a classic group from now on", made.group_id)
        self._classic.adopt(shard, made, Cause.CONVERTED if rebalances else None)
