"""The assignment that keeps what it can: what `sticky` and `cooperative_sticky` have in common."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.assignors.stickiness import constrained, general
from coordinator.assignors.stickiness.claims import Claim, earlier_owners, settle
from coordinator.assignors.stickiness.racks import Racks
from coordinator.assignors.subscriptions import (
    Assignment,
    Members,
    Subscription,
    TopicPartition,
    Topics,
    as_kafka_walks,
)


def assign(
    members: Members, topics: Topics, claim: Callable[[Subscription], Claim]
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """The partitions of each member; `claim` finds what a member says that it owned.

    Also the new owners of those partitions that another member has to give up first; None where
    that has to be found out by comparing.
    """
    if not members:
        return {}, {}
    members, topics = as_kafka_walks(members, topics)
    claims = {member: claim(subscription) for member, subscription in members.items()}
    racks = Racks(members, topics)
    owned = settle(claims, members, topics)
    if len({frozenset(subscription.topics) for subscription in members.values()}) == 1:
        return constrained.assign(topics, racks, owned)
    return general.assign(members, topics, racks, owned, earlier_owners(claims)), None
