"""Assign like the `cooperative-sticky` assignor: nobody gets what another has not revoked.

Members keep their partitions while the group rebalances (KIP-429). A partition that is to go from
one member to another is at first assigned to nobody; the member that misses it revokes it and joins
again, and then it is free for the other. What members own and since which generation is in their
subscriptions, the generation of those older than version 2 in the user data: an int32.
Kafka's counterpart is CooperativeStickyAssignor.
"""

from __future__ import annotations

from coordinator.assignors.stickiness import sticky_assignment
from coordinator.assignors.stickiness.claims import OwnershipClaim
from coordinator.assignors.subscriptions import (
    NO_GENERATION,
    Assignment,
    ConsumerSubscription,
    Members,
    TopicPartition,
    Topics,
)
from coordinator.shard.record_fields import FieldReader, FieldWriter

NAME = "cooperative-sticky"


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member, but those that another member has to revoke first.

    The order is Kafka's (see `subscriptions`).
    """
    assignment, moving = sticky_assignment.assign_sticky(members, topics, _read_claim)
    if moving is None:
        moving = _find_moving_partitions(members, assignment)
    for partition, member in moving.items():
        assignment[member].remove(partition)
    return assignment


def encode_user_data(generation: int) -> bytes:
    """Encode the generation of a member's owned partitions for the next leader."""
    writer = FieldWriter.without_version()
    writer.write_int32(generation)
    return writer.to_bytes()


def decode_user_data(data: bytes) -> int:
    """Decode the generation from a member's user data; -1 if it can't be read."""
    try:
        return FieldReader(data).read_int32()
    except ValueError:
        return NO_GENERATION


def _read_claim(subscription: ConsumerSubscription) -> OwnershipClaim:
    generation = subscription.generation
    if generation == NO_GENERATION:
        generation = decode_user_data(subscription.user_data or b"")
    return OwnershipClaim(subscription.owned, generation)


def _find_moving_partitions(members: Members, assignment: Assignment) -> dict[TopicPartition, str]:
    """Return the new owners of those partitions that another member owns and doesn't keep."""
    new_owners: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, assigned in assignment.items():
        owned = set(members[member].owned)
        new_owners.update((partition, member) for partition in assigned if partition not in owned)
        revoked |= owned.difference(assigned)
    return {partition: member for partition, member in new_owners.items() if partition in revoked}
