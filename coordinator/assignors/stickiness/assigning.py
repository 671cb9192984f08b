"""Assign partitions so that members keep what they can, for both sticky assignors."""

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
    """Return the partitions of each member, and the new owners of partitions that move.

    `read_claim` finds the partitions that a member says it owned. Moving partitions are those that
    another member has to revoke first; None where that has to be found out by comparing.
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
