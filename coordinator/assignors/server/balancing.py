"""Balance partitions among members whose subscriptions differ.

Theory of operation. Members keep what they have of topics that they are (still) subscribed to. Then
each free partition goes to the subscriber that has the fewest partitions, topics with the most
partitions a subscriber first, since these leave the least choice. Then, topic by topic, a partition
moves from the subscriber that has the most partitions, and some of this topic, to the one that has
the fewest, as long as they differ by more than one; so do all topics in turn until none moves
anything, 16 times at most. Each move brings two members closer, nothing else moves.

What comes out: where the subscribers of a topic have the same subscriptions, they are balanced
within one. Where subscriptions only overlap, a better balance may take a chain of moves.
The rule, with its bound of 16, is that of Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeAlias
from uuid import UUID

from coordinator.assignors.server.subscription import TopicPartitions

KeepsAll: TypeAlias = bool
ReceivingMembers: TypeAlias = set[int]
ChangedMembers: TypeAlias = set[int]

_MAX_ROUNDS = 16
_NO_OWNER = -1


def balance_partitions(
    topics: Mapping[str, frozenset[UUID]],
    assigned: Mapping[str, TopicPartitions],
    partition_counts: Mapping[UUID, int],
) -> dict[str, TopicPartitions]:
    """Return the balanced target assignment of each member.

    `topics`: what each member is subscribed to, of topics that exist; `assigned`: what it has.
    """
    members = sorted(topics)
    subscribers: dict[UUID, list[int]] = {}
    for index, member in enumerate(members):
        for topic in topics[member]:
            subscribers.setdefault(topic, []).append(index)
    order = sorted(
        subscribers,
        key=lambda t: (-partition_counts[t] / len(subscribers[t]), len(subscribers[t]), t.int),
    )
    owners = {topic: [_NO_OWNER] * partition_counts[topic] for topic in order}
    loads = [0] * len(members)
    changed_members = {
        index
        for index, member in enumerate(members)
        if not _keep_assigned_partitions(assigned[member], topics[member], owners, index, loads)
    }
    for topic in order:
        changed_members |= _assign_free_partitions(owners[topic], subscribers[topic], loads)
    has_moved = True
    for _ in range(_MAX_ROUNDS):
        if not has_moved:
            break
        has_moved = False
        for topic in order:
            moved_members = _balance_topic(owners[topic], subscribers[topic], loads)
            changed_members |= moved_members
            has_moved |= bool(moved_members)

    targets = _collect_targets(owners, changed_members)
    return {
        member: targets[index] if index in changed_members else assigned[member]
        for index, member in enumerate(members)
    }


def _keep_assigned_partitions(
    assigned: TopicPartitions,
    topics: frozenset[UUID],
    owners: dict[UUID, list[int]],
    member: int,
    loads: list[int],
) -> KeepsAll:
    """Give a member the assigned partitions that it may keep; return whether it keeps all."""
    keeps_all = True
    for topic, assigned_partitions in assigned.items():
        if topic not in topics:
            keeps_all = False
            continue
        partition_owners = owners[topic]
        for partition in assigned_partitions:
            if partition < len(partition_owners) and partition_owners[partition] == _NO_OWNER:
                partition_owners[partition] = member
                loads[member] += 1
            else:
                keeps_all = False
    return keeps_all


def _assign_free_partitions(
    partition_owners: list[int], subscribers: list[int], loads: list[int]
) -> ReceivingMembers:
    """Give each free partition of a topic to its least loaded subscriber; return the receivers."""
    receivers: set[int] = set()
    if _NO_OWNER not in partition_owners:
        return receivers
    least_loaded = [(loads[member], member) for member in subscribers]
    heapq.heapify(least_loaded)
    for partition, holder in enumerate(partition_owners):
        if holder == _NO_OWNER:
            size, member = least_loaded[0]
            partition_owners[partition] = member
            loads[member] = size + 1
            heapq.heapreplace(least_loaded, (size + 1, member))
            receivers.add(member)
    return receivers


def _balance_topic(
    partition_owners: list[int], subscribers: list[int], sizes: list[int]
) -> ChangedMembers:
    """Move partitions of a topic to less loaded subscribers; return the members that changed.

    A load in one heap may be out of date by what happened through the other. That does no harm: who
    gave was the most loaded and who took the least loaded, so once such an entry comes up, what is
    between the two ends is one at most.
    """
    subscriber_loads = [sizes[member] for member in subscribers]
    if max(subscriber_loads) - min(subscriber_loads) <= 1:
        return set()
    owned_partitions: dict[int, list[int]] = {}
    for partition, owner_index in enumerate(partition_owners):
        owned_partitions.setdefault(owner_index, []).append(partition)
    most_loaded = [(-sizes[member], -member) for member in owned_partitions]
    least_loaded = list(zip(subscriber_loads, subscribers, strict=True))
    heapq.heapify(most_loaded)
    heapq.heapify(least_loaded)
    changed_members: set[int] = set()
    while most_loaded:
        giver, taker = -most_loaded[0][1], least_loaded[0][1]
        if sizes[giver] - sizes[taker] <= 1:
            break
        partition_owners[owned_partitions[giver].pop()] = taker
        sizes[giver] -= 1
        sizes[taker] += 1
        changed_members |= {giver, taker}
        heapq.heapreplace(least_loaded, (sizes[taker], taker))
        if owned_partitions[giver]:
            heapq.heapreplace(most_loaded, (-sizes[giver], -giver))
        else:
            heapq.heappop(most_loaded)
    return changed_members


def _collect_targets(
    owners: Mapping[UUID, list[int]], changed_members: set[int]
) -> dict[int, TopicPartitions]:
    """Return the target assignments of the changed members, from the owner of each partition."""
    partitions_by_member: dict[int, dict[UUID, set[int]]] = {
        member: {} for member in changed_members
    }
    for topic, partition_owners in owners.items():
        for partition, member_index in enumerate(partition_owners):
            if member_index in changed_members:
                partitions_by_member[member_index].setdefault(topic, set()).add(partition)
    return {
        member: {topic: frozenset(partitions) for topic, partitions in topics.items()}
        for member, topics in partitions_by_member.items()
    }
