"""Who owned which partition before: what members claim, made consistent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignors.subscriptions import Members, TopicPartition, Topics


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says that it owned, in which generation."""

    partitions: Sequence[TopicPartition]
    generation: int


@dataclass(frozen=True, slots=True)
class Owned:
    """Each member's partitions, none with two owners; and those that two members claimed alike."""

    by_member: dict[str, list[TopicPartition]]
    disputed: set[TopicPartition]


def settle(claims: Mapping[str, Claim], members: Members, topics: Topics) -> Owned:
    """Of two claims the one of the newer generation holds; neither does if they are equal.

    Kafka compares the generation of the later claim, which `sticky` has from its user data, with
    the one of the earlier member's subscription. So do we.
    """
    owners: dict[TopicPartition, str] = {}
    by_member: dict[str, list[TopicPartition]] = {}
    disputed: set[TopicPartition] = set()
    for member, claim in claims.items():
        mine = by_member[member] = []
        for partition in claim.partitions:
            topic, number = partition
            if not 0 <= number < len(topics.get(topic, ())):
                continue
            other = owners.get(partition)
            others_generation = -1 if other is None else members[other].generation
            if other is None:
                mine.append(partition)
            elif claim.generation < others_generation:
                continue
            else:
                if claim.generation > others_generation:
                    mine.append(partition)
                else:
                    disputed.add(partition)
                if partition in by_member[other]:
                    by_member[other].remove(partition)
            owners[partition] = member
    return Owned(by_member, disputed)


def earlier_owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Who had a partition before the newest generation: the newest such claim, or the first."""
    newest = max((claim.generation for claim in claims.values()), default=-1)
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member, claim in claims.items():
        if claim.generation == newest:
            continue
        for partition in claim.partitions:
            if partition not in latest or claim.generation > latest[partition][0]:
                latest[partition] = claim.generation, member
    return {partition: member for partition, (_, member) in latest.items()}
