"""Conversions of groups as their shards see them: what goes into the batch, what follows it.

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
    """Both ways. `policy`: which of them is allowed."""

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
        """What to write before anything else, and what the group is then. An empty one makes way.

        Refuses with 69 and -1 (see `migration.upgrade`).
        """
        records: list[Record] = [GroupForgotten(group.group_id)]
        if group.phase is Phase.EMPTY:
            return records, ConsumerGroup(group.group_id)
        check_upgrade(group, self.policy)
        made = upgrade(group, self._topics)
        return [*records, *made], outcome(group.group_id, made)

    def upgraded(self, shard: GroupShard, group: Group) -> None:
        """It has been written: nobody waits for a round of the classic group any more."""
        logger.info("%s is a consumer group from now on", group.group_id)
        self._classic.drop(shard, group)

    # To a classic group

    def downgrade(
        self, group: ConsumerGroup, going: Collection[Member]
    ) -> tuple[list[Record], Group] | None:
        """What to write instead of putting these members out, and what the group is then. None: it
        stays what it is."""
        if not is_to_downgrade(group, going, 0, self.policy):
            return None
        made = downgrade(group, going, {}, self._topics, self._clock.now_ms())
        return [*forget(group), made.saved()], made

    def downgraded(self, shard: GroupShard, made: Group, *, rebalances: bool = True) -> None:
        """It has been written: the members are given their time, and told to join again if what
        they have isn't what they are to have."""
        logger.info("%s is a classic group from now on", made.group_id)
        self._classic.adopt(shard, made, Cause.CONVERTED if rebalances else None)
