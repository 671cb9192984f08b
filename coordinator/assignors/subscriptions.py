"""Define the input of client-side assignors: members' subscriptions, and topics.

The assignors that a leader runs (`range`, `round_robin`, `sticky`, `cooperative_sticky`) have one
function, `assign(members, topics)`. It returns what Kafka's class of the same name returns (clients
4.3), the order of each member's partitions included. The order of `members`, which is the one of
the JoinGroup response, matters as little as it does in Kafka (see `java_order`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from coordinator.assignors.java_order import sort_like_hash_map

TopicPartition = tuple[str, int]
# For each partition of a topic, from 0 on, the racks that have a replica of it; empty if unknown.
Topics = Mapping[str, Sequence[AbstractSet[str]]]
Assignment = dict[str, list[TopicPartition]]
# The new owners of partitions that another member has to revoke first.
MovingPartitions = dict[TopicPartition, str]

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """Represents the topics that a member subscribes to, and the partitions that it owns.

    `owned`, `generation` (of `owned`) and `rack_id` are None or empty, -1 and None for members that
    speak an older version of the protocol; `instance_id` comes from JoinGroup, not from these
    bytes.
    """

    topics: Sequence[str]
    user_data: bytes | None = None
    owned: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION
    rack_id: str | None = None
    instance_id: str | None = None


Members = Mapping[str, ConsumerSubscription]


def order_like_kafka(
    members: Members, topics: Topics
) -> tuple[dict[str, ConsumerSubscription], Topics]:
    """Return members and existing subscribed topics in the order of Kafka's hash maps.

    Topics without partitions are left out.
    """
    ordered = {member: members[member] for member in sort_like_hash_map(members)}
    subscribed = sort_like_hash_map(topic for each in ordered.values() for topic in each.topics)
    existing = sort_like_hash_map(topic for topic in subscribed if topics.get(topic))
    return ordered, {topic: topics[topic] for topic in existing}


def sort_static_members_first(members: Members) -> list[str]:
    """Return member ids: static members by instance id, then the others by member id."""

    def sort_key(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return (True, member) if instance_id is None else (False, instance_id)

    return sorted(members, key=sort_key)


def racks_affect_assignment(
    consumer_racks: AbstractSet[str], partition_racks: Sequence[AbstractSet[str]]
) -> bool:
    """Return whether racks make it matter which consumer gets which partition (KIP-881).

    They don't if no consumer is in a rack that has a replica, or if all racks have all partitions.
    """
    all_racks = set().union(*partition_racks)
    return not consumer_racks.isdisjoint(all_racks) and any(
        racks != all_racks for racks in partition_racks
    )
