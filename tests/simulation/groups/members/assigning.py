"""The consumer's embedded protocol: who wants which topics, and who gets which partitions.

Written from Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, version 2. The two
assignors are as simple as they can be and right: `range` for eager members, and a cooperative one,
which gives a partition to its new owner only when the old one doesn't claim it any more.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tests.simulation.ledger import Place


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    owned: frozenset[Place] = frozenset()
    generation: int = -1


def encode_subscription(subscription: Subscription) -> bytes:
    topics = b"".join(map(_string, subscription.topics))
    head = struct.pack(">hi", 2, len(subscription.topics)) + topics + struct.pack(">i", -1)
    return head + _places(subscription.owned) + struct.pack(">i", subscription.generation)


def decode_subscription(data: bytes) -> Subscription:
    (count,) = struct.unpack_from(">i", data, 2)
    at = 6
    topics = []
    for _ in range(count):
        topic, at = _read_string(data, at)
        topics.append(topic)
    owned, at = _read_places(data, at + 4)
    (generation,) = struct.unpack_from(">i", data, at)
    return Subscription(tuple(topics), owned, generation)


def encode_assignment(places: Collection[Place]) -> bytes:
    return struct.pack(">h", 2) + _places(places) + struct.pack(">i", -1)


def decode_assignment(data: bytes) -> frozenset[Place]:
    """Nothing at all is an empty assignment: of a member that the leader left out."""
    return _read_places(data, 2)[0] if data else frozenset()


def range_assigned(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, set[Place]]:
    """Of each topic, neighbouring partitions to each of its subscribers."""
    assigned: dict[str, set[Place]] = {member: set() for member in members}
    for topic, count in sorted(counts.items()):
        subscribers = sorted(m for m, wanted in members.items() if topic in wanted.topics)
        for index in range(count if subscribers else 0):
            assigned[subscribers[index * len(subscribers) // count]].add((topic, index))
    return assigned


def cooperatively_assigned(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, set[Place]]:
    """Everybody keeps what it has, up to its share; what somebody else still claims is held back.

    Of two claims the one of the later generation counts.
    """
    claims: dict[Place, str] = {}
    for member, wanted in sorted(members.items(), key=lambda item: item[1].generation):
        claims |= dict.fromkeys(wanted.owned, member)
    assigned: dict[str, set[Place]] = {member: set() for member in members}
    places = [(topic, index) for topic, count in sorted(counts.items()) for index in range(count)]
    share = -(-len(places) // max(1, len(members)))
    left = []
    for place in places:
        owner = claims.get(place)
        is_kept = owner is not None and place[0] in members[owner].topics
        if owner is not None and is_kept and len(assigned[owner]) < share:
            assigned[owner].add(place)
        else:
            left.append(place)
    for place in left:
        subscribers = [member for member in members if place[0] in members[member].topics]
        if subscribers:
            chosen = min(subscribers, key=lambda member: (len(assigned[member]), member))
            assigned[chosen].add(place)
    claimed = {place: {m for m, s in members.items() if place in s.owned} for place in places}
    return {m: {p for p in got if claimed[p] <= {m}} for m, got in assigned.items()}


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _places(places: Iterable[Place]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    parts = [struct.pack(">i", len(topics))]
    for topic, indexes in topics.items():
        parts.append(_string(topic) + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes))
    return b"".join(parts)


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def _read_places(data: bytes, at: int) -> tuple[frozenset[Place], int]:
    (topics,) = struct.unpack_from(">i", data, at)
    at += 4
    places = []
    for _ in range(topics):
        topic, at = _read_string(data, at)
        (count,) = struct.unpack_from(">i", data, at)
        places += [(topic, each) for each in struct.unpack_from(f">{count}i", data, at + 4)]
        at += 4 + 4 * count
    return frozenset(places), at
