"""Assign like the `cooperative-sticky` assignor: nobody gets what another has not revoked.

Members keep their partitions while the group rebalances (KIP-429). A partition that is to go from
one member to another is at first assigned to nobody; the member that misses it revokes it and joins
again, and then it is free for the other. What members own and since which generation is in their
subscriptions, the generation of those older than version 2 in the user data: an int32.
Kafka's counterpart is CooperativeStickyAssignor.
"""

from __future__ import annotations

from coordinator.assignors.stickiness import assigning
from coordinator.assignors.stickiness.claims import Claim
from coordinator.assignors.subscriptions import (
    NO_GENERATION,
    Assignment,
    Members,
    Subscription,
    TopicPartition,
    Topics,
)
from coordinator.shard.records import Reader, Writer

NAME = "cooperative-sticky"


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member, but those that another member has to revoke first.

    The order is Kafka's (see `subscriptions`).
    """
    assignment, moving = assigning.assign(members, topics, _claim)
    if moving is None:
        moving = _moving(members, assignment)
    for partition, member in moving.items():
        assignment[member].remove(partition)
    return assignment


def encode_user_data(generation: int) -> bytes:
    """Encode the generation of a member's owned partitions for the next leader."""
    writer = Writer.bare()
    writer.int32(generation)
    return writer.done()


def decode_user_data(data: bytes) -> int:
    """Decode the generation from a member's user data; -1 if it can't be read."""
    try:
        return Reader(data).int32()
    except ValueError:
        return NO_GENERATION


def _claim(subscription: Subscription) -> Claim:
    generation = subscription.generation
    if generation == NO_GENERATION:
        generation = decode_user_data(subscription.user_data or b"")
    return Claim(subscription.owned, generation)


def _moving(members: Members, assignment: Assignment) -> dict[TopicPartition, str]:
    """Return the new owners of those partitions that another member owns and doesn't keep."""
    new_owners: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, assigned in assignment.items():
        owned = set(members[member].owned)
        new_owners.update((partition, member) for partition in assigned if partition not in owned)
        revoked |= owned.difference(assigned)
    return {partition: member for partition, member in new_owners.items() if partition in revoked}
