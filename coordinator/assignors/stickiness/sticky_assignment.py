"""Assign partitions so that members keep what they can, for both sticky assignors."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.assignors.stickiness import constrained, general
from coordinator.assignors.stickiness.claims import (
    OwnershipClaim,
    find_earlier_owners,
    resolve_claims,
)
from coordinator.assignors.stickiness.racks import RackInfo
from coordinator.assignors.subscriptions import (
    Assignment,
    ConsumerSubscription,
    Members,
    MovingPartitions,
    Topics,
    order_like_kafka,
)


def assign_sticky(
    members: Members, topics: Topics, read_claim: Callable[[ConsumerSubscription], OwnershipClaim]
) -> tuple[Assignment, MovingPartitions | None]:
    """Return the partitions of each member, and the new owners of partitions that move.

    `read_claim` finds the partitions that a member says it owned. Moving partitions are those that
    another member has to revoke first; None where that has to be found out by comparing.
    """
    if not members:
        return {}, {}
    members, topics = order_like_kafka(members, topics)
    claims = {member: read_claim(subscription) for member, subscription in members.items()}
    racks = RackInfo(members, topics)
    owned = resolve_claims(claims, members, topics)
    if len({frozenset(subscription.topics) for subscription in members.values()}) == 1:
        return constrained.assign_constrained(topics, racks, owned)
    return general.assign_general(members, topics, racks, owned, find_earlier_owners(claims)), None
