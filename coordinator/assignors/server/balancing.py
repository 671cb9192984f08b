"""A balanced assignment for members whose subscriptions differ.

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
from uuid import UUID

from coordinator.assignors.server.subscription import TopicPartitions

_ROUNDS_MAX = 16
_NOBODY = -1


def balance(
    topics: Mapping[str, frozenset[UUID]],
    assigned: Mapping[str, TopicPartitions],
    partitions: Mapping[UUID, int],
) -> dict[str, TopicPartitions]:
    """The target of each member.

    `topics`: what each member is subscribed to, of topics that exist; `assigned`: what it has.
    """
    members = sorted(topics)
    subscribers: dict[UUID, list[int]] = {}
    for index, member in enumerate(members):
        for topic in topics[member]:
            subscribers.setdefault(topic, []).append(index)
    order = sorted(
        subscribers,
        key=lambda t: (-partitions[t] / len(subscribers[t]), len(subscribers[t]), t.int),
    )
    owners = {topic: [_NOBODY] * partitions[topic] for topic in order}
    sizes = [0] * len(members)
    changed = {
        index
        for index, member in enumerate(members)
        if not _keep(assigned[member], topics[member], owners, index, sizes)
    }
    for topic in order:
        changed |= _hand_out(owners[topic], subscribers[topic], sizes)
    moving = True
    for _ in range(_ROUNDS_MAX):
        if not moving:
            break
        moving = False
        for topic in order:
            moved = _even_out(owners[topic], subscribers[topic], sizes)
            changed |= moved
            moving |= bool(moved)

    targets = _targets(owners, changed)
    return {
        member: targets[index] if index in changed else assigned[member]
        for index, member in enumerate(members)
    }


def _keep(
    assigned: TopicPartitions,
    topics: frozenset[UUID],
    owners: dict[UUID, list[int]],
    member: int,
    sizes: list[int],
) -> bool:
    """Give a member what it may keep. Returns whether that is all that it had."""
    whole = True
    for topic, mine in assigned.items():
        if topic not in topics:
            whole = False
            continue
        owner = owners[topic]
        for partition in mine:
            if partition < len(owner) and owner[partition] == _NOBODY:
                owner[partition] = member
                sizes[member] += 1
            else:
                whole = False
    return whole


def _hand_out(owner: list[int], subscribers: list[int], sizes: list[int]) -> set[int]:
    """Give each free partition of a topic to its least loaded subscriber. Returns who got any."""
    takers: set[int] = set()
    if _NOBODY not in owner:
        return takers
    least = [(sizes[member], member) for member in subscribers]
    heapq.heapify(least)
    for partition, holder in enumerate(owner):
        if holder == _NOBODY:
            size, member = least[0]
            owner[partition] = member
            sizes[member] = size + 1
            heapq.heapreplace(least, (size + 1, member))
            takers.add(member)
    return takers


def _even_out(owner: list[int], subscribers: list[int], sizes: list[int]) -> set[int]:
    """Move partitions of a topic to its less loaded subscribers. Returns who has lost or got any.

    A size in one heap may be out of date by what happened through the other. That does no harm: who
    gave was the most loaded and who took the least loaded, so once such an entry comes up, what is
    between the two ends is one at most.
    """
    loads = [sizes[member] for member in subscribers]
    if max(loads) - min(loads) <= 1:
        return set()
    held: dict[int, list[int]] = {}
    for partition, holder in enumerate(owner):
        held.setdefault(holder, []).append(partition)
    most = [(-sizes[member], -member) for member in held]
    least = list(zip(loads, subscribers, strict=True))
    heapq.heapify(most)
    heapq.heapify(least)
    touched: set[int] = set()
    while most:
        giver, taker = -most[0][1], least[0][1]
        if sizes[giver] - sizes[taker] <= 1:
            break
        owner[held[giver].pop()] = taker
        sizes[giver] -= 1
        sizes[taker] += 1
        touched |= {giver, taker}
        heapq.heapreplace(least, (sizes[taker], taker))
        if held[giver]:
            heapq.heapreplace(most, (-sizes[giver], -giver))
        else:
            heapq.heappop(most)
    return touched


def _targets(owners: Mapping[UUID, list[int]], changed: set[int]) -> dict[int, TopicPartitions]:
    """What the members who have `changed` own now."""
    mine: dict[int, dict[UUID, set[int]]] = {member: {} for member in changed}
    for topic, owner in owners.items():
        for partition, holder in enumerate(owner):
            if holder in changed:
                mine[holder].setdefault(topic, set()).add(partition)
    return {
        member: {topic: frozenset(held) for topic, held in topics.items()}
        for member, topics in mine.items()
    }
