"""Assign like the `roundrobin` assignor: all partitions are dealt to the members in turn.

Partitions go by topic and number; static members come first. Who isn't subscribed to the topic is
passed over, and the next turn is that of the one after the taker.
Kafka's counterpart is RoundRobinAssignor.
"""

from __future__ import annotations

from coordinator.assignors.subscriptions import (
    Assignment,
    Members,
    Topics,
    order_like_kafka,
    sort_static_members_first,
)

NAME = "roundrobin"


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member, dealt to the members in turn.

    See `subscriptions` for the contract.
    """
    members, topics = order_like_kafka(members, topics)
    subscribed = {member: frozenset(each.topics) for member, each in members.items()}
    circle = sort_static_members_first(members)
    assignment: Assignment = {member: [] for member in members}
    turn = 0
    for topic in sorted(topics):
        for partition in range(len(topics[topic])):
            while topic not in subscribed[circle[turn]]:
                turn = (turn + 1) % len(circle)
            assignment[circle[turn]].append((topic, partition))
            turn = (turn + 1) % len(circle)
    return assignment
