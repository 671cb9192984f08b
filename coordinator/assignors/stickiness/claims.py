"""Resolve the members' claims of owned partitions, so that each partition has one owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignors.subscriptions import Members, TopicPartition, Topics


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """Holds the partitions that a member says it owned, and in which generation."""

    partitions: Sequence[TopicPartition]
    generation: int


@dataclass(frozen=True, slots=True)
class ResolvedOwnership:
    """Holds each member's partitions, none with two owners.

    `disputed`: partitions that two members claimed in the same generation.
    """

    by_member: dict[str, list[TopicPartition]]
    disputed: set[TopicPartition]


def resolve_claims(
    claims: Mapping[str, OwnershipClaim], members: Members, topics: Topics
) -> ResolvedOwnership:
    """Return the owners of claimed partitions; of two claims the one of the newer generation holds.

    Neither does if they are equal. Kafka compares the generation of the later claim, which `sticky`
    has from its user data, with the one of the earlier member's subscription. So do we.
    """
    owners: dict[TopicPartition, str] = {}
    by_member: dict[str, list[TopicPartition]] = {}
    disputed: set[TopicPartition] = set()
    for member, claim in claims.items():
        member_partitions = by_member[member] = []
        for partition in claim.partitions:
            topic, number = partition
            if not 0 <= number < len(topics.get(topic, ())):
                continue
            earlier_member = owners.get(partition)
            earlier_generation = (
                -1 if earlier_member is None else members[earlier_member].generation
            )
            if earlier_member is None:
                member_partitions.append(partition)
            elif claim.generation < earlier_generation:
                continue
            else:
                if claim.generation > earlier_generation:
                    member_partitions.append(partition)
                else:
                    disputed.add(partition)
                if partition in by_member[earlier_member]:
                    by_member[earlier_member].remove(partition)
            owners[partition] = member
    return ResolvedOwnership(by_member, disputed)


def find_earlier_owners(claims: Mapping[str, OwnershipClaim]) -> dict[TopicPartition, str]:
    """Return the last owner of each partition that was claimed for an older generation.

    The newest of several such claims holds, and of those of one generation the first.
    """
    newest_generation = max((claim.generation for claim in claims.values()), default=-1)
    latest_claims: dict[TopicPartition, tuple[int, str]] = {}
    for member, claim in claims.items():
        if claim.generation == newest_generation:
            continue
        for partition in claim.partitions:
            if partition not in latest_claims or claim.generation > latest_claims[partition][0]:
                latest_claims[partition] = claim.generation, member
    return {partition: member for partition, (_, member) in latest_claims.items()}
