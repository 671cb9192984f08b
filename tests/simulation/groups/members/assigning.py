"""Encode the consumer's embedded protocol: subscriptions and assignments.

Written from Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, version 2, apart
from what the broker reads them with. The assignors that leaders run are the product's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from coordinator.assignors import cooperative_sticky, round_robin, sticky
from coordinator.assignors import range as range_assignor
from coordinator.assignors import subscriptions as subscriptions_of_product
from tests.simulation.ledger import Place

Assign = Callable[
    [subscriptions_of_product.Members, subscriptions_of_product.Topics],
    subscriptions_of_product.Assignment,
]
ASSIGNORS: dict[str, Assign] = {
    each.NAME: each.assign for each in (range_assignor, round_robin, sticky, cooperative_sticky)
}
STICKY, COOPERATIVE = sticky.NAME, cooperative_sticky.NAME


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: frozenset[Place] = frozenset()
    generation: int = -1


def encode_subscription(subscription: Subscription) -> bytes:
    topics = b"".join(map(_string, subscription.topics))
    data = subscription.user_data
    length = struct.pack(">i", -1 if data is None else len(data))
    head = struct.pack(">hi", 2, len(subscription.topics)) + topics + length + (data or b"")
    return head + _places(subscription.owned) + struct.pack(">i", subscription.generation)


def decode_subscription(data: bytes) -> Subscription:
    (count,) = struct.unpack_from(">i", data, 2)
    at = 6
    topics = []
    for _ in range(count):
        topic, at = _read_string(data, at)
        topics.append(topic)
    (length,) = struct.unpack_from(">i", data, at)
    user_data = None if length < 0 else data[at + 4 : at + 4 + length]
    owned, at = _read_places(data, at + 4 + max(0, length))
    (generation,) = struct.unpack_from(">i", data, at)
    return Subscription(tuple(topics), user_data, owned, generation)


def encode_assignment(places: Collection[Place]) -> bytes:
    return struct.pack(">h", 2) + _places(places) + struct.pack(">i", -1)


def decode_assignment(data: bytes) -> frozenset[Place]:
    """Decode an assignment; no bytes are an empty one, of a member that the leader left out."""
    return _read_places(data, 2)[0] if data else frozenset()


def assigned(
    protocol: str, members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[Place]]:
    """Assign the partitions by the assignor of this name."""
    subscriptions = {
        member: subscriptions_of_product.ConsumerSubscription(
            wanted.topics, wanted.user_data, sorted(wanted.owned), wanted.generation
        )
        for member, wanted in members.items()
    }
    nowhere: frozenset[str] = frozenset()  # no racks
    return ASSIGNORS[protocol](subscriptions, {t: [nowhere] * n for t, n in counts.items()})


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
