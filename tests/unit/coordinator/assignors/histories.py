"""Generate random groups from a seed whose members join, leave, and change their subscriptions.

Each round is what a leader sees; the group goes on with what our assignor makes of it, so rounds
build on each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType

from coordinator.assignors import cooperative_sticky, round_robin, sticky
from coordinator.assignors import range as range_assignor
from coordinator.assignors.consumer_protocol import decode_subscription, encode_subscription
from coordinator.assignors.subscriptions import (
    Assignment,
    ConsumerSubscription,
    TopicPartition,
)

ASSIGNORS: Mapping[str, ModuleType] = {
    each.NAME: each for each in (range_assignor, round_robin, sticky, cooperative_sticky)
}
RACKS = ("a", "b", "c")
NAMES = tuple(f"{word}-{n}" for word in ("orders", "clicks", "users.v2") for n in range(6))


@dataclass
class Member:
    topics: list[str]
    version: int  # of ConsumerProtocol
    rack_id: str | None = None
    instance_id: str | None = None
    owned: list[TopicPartition] = field(default_factory=list)
    generation: int = -1


@dataclass(frozen=True)
class Round:
    """Holds the input of a leader in one round, and our assignor's result."""

    assignor: str
    generation: int
    topics: Mapping[str, list[list[str]]]
    subscriptions: Mapping[str, bytes]
    instance_ids: Mapping[str, str | None]
    assignment: Assignment

    def members(self) -> dict[str, ConsumerSubscription]:
        return {
            member: replace(decode_subscription(data), instance_id=self.instance_ids[member])
            for member, data in self.subscriptions.items()
        }

    def owned(self, member: ConsumerSubscription) -> tuple[Sequence[TopicPartition], int]:
        """Return the partitions that a member claims to have owned, and in which generation."""
        if self.assignor == sticky.NAME:
            return sticky.decode_user_data(member.user_data or b"")
        generation = member.generation
        if generation < 0:
            generation = cooperative_sticky.decode_user_data(member.user_data or b"")
        return member.owned, generation

    def is_sound(self) -> bool:
        """Return whether Kafka's class is correct here; its sticky assignors are not where

        - a member owned partitions, in an older generation, of a topic that it has unsubscribed
          from since: it may get them back, or they go to and fro for ever;
        - a member owned partitions that don't exist any more, of a topic that does: they may be
          assigned, others twice, or it throws;
        - a member is subscribed to nothing: it may be taken for one that is subscribed as the
          others are.
        """
        if self.assignor not in (sticky.NAME, cooperative_sticky.NAME):
            return True
        members = self.members().values()
        newest = max(self.owned(member)[1] for member in members)
        for member in members:
            partitions, generation = self.owned(member)
            for topic, partition in partitions:
                if generation < newest and topic not in member.topics:
                    return False
                if topic in self.topics and partition >= len(self.topics[topic]):
                    return False
        return all(member.topics for member in members)


class Group:
    """Represents a group and its topics, whose history `rng` decides."""

    def __init__(self, rng: random.Random, assignor: str) -> None:
        self._rng = rng
        self._assignor = assignor
        self._alike = rng.random() < 0.5
        self._racks = rng.random() < 0.5
        self._versions = rng.choice([(3,), (0, 1, 2, 3)])
        self._generation = 0
        self._members: dict[str, Member] = {}
        self._topics: dict[str, list[list[str]]] = {}
        for name in rng.sample(NAMES, rng.choice([1, 2, 3, 5, 8, 16])):
            self._topics[name] = []
            self._grow(name)
        self._subscription = self._some_topics()

    def rounds(self, count: int) -> Iterator[Round]:
        for _ in range(self._rng.randint(1, 9)):
            self._join()
        for _ in range(count):
            self._generation += 1
            late = {member for member in self._members if self._rng.random() < 0.1}
            present = {m: each for m, each in self._members.items() if m not in late}
            if present:
                yield self._round(present)
            self._change()

    def _round(self, members: Mapping[str, Member]) -> Round:
        subscriptions = {member: self._subscribe(each) for member, each in members.items()}
        instance_ids = {member: each.instance_id for member, each in members.items()}
        topics = {name: list(partitions) for name, partitions in self._topics.items()}
        draft = Round(self._assignor, self._generation, topics, subscriptions, instance_ids, {})
        racks = {name: [frozenset(each) for each in topics[name]] for name in topics}
        assignment = ASSIGNORS[self._assignor].assign(draft.members(), racks)
        for member, each in members.items():
            each.owned = list(assignment[member])
            each.generation = self._generation
        return replace(draft, assignment=assignment)

    def _subscribe(self, member: Member) -> bytes:
        user_data = None
        if member.generation >= 0:
            if self._assignor == sticky.NAME:
                user_data = sticky.encode_user_data(member.owned, member.generation)
                if self._rng.random() < 0.1:
                    user_data = self._damaged(user_data)
            elif self._assignor == cooperative_sticky.NAME:
                user_data = cooperative_sticky.encode_user_data(member.generation)
        owned = member.owned if self._assignor == cooperative_sticky.NAME else []
        subscription = ConsumerSubscription(
            member.topics, user_data, owned, member.generation, member.rack_id
        )
        return encode_subscription(subscription, member.version)

    def _damaged(self, user_data: bytes) -> bytes:
        """Return user data of version 0, cut short, or with bytes after its end."""
        end = self._rng.choice([-4, -6, 0, len(user_data)])
        return user_data[:end] or user_data + b"more"

    def _join(self) -> None:
        rng = self._rng
        member = f"client-{rng.randint(1, 3)}-{rng.getrandbits(64):016x}"
        self._members[member] = Member(
            topics=self._subscription if self._alike else self._some_topics(),
            version=rng.choice(self._versions),
            rack_id=rng.choice((*RACKS, "", None)) if self._racks else None,
            instance_id=f"static-{rng.getrandbits(32)}" if rng.random() < 0.2 else None,
        )

    def _change(self) -> None:
        rng = self._rng
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            self._join()
        for _ in range(rng.choice([0, 0, 1, 2])):
            if len(self._members) > 1:
                del self._members[rng.choice(list(self._members))]
        self._change_topics()
        if rng.random() < 0.3:
            self._subscription = self._some_topics()
            for each in self._members.values():
                if self._alike or rng.random() < 0.3:
                    each.topics = self._subscription
        if rng.random() < 0.1 and len(self._members) > 1:
            one, other = rng.sample(list(self._members.values()), 2)
            one.owned = one.owned + other.owned[:2]  # both claim these

    def _change_topics(self) -> None:
        rng = self._rng
        if rng.random() < 0.3:
            self._grow(rng.choice(list(self._topics)))
        if rng.random() < 0.1 and len(self._topics) > 1:
            del self._topics[rng.choice(list(self._topics))]
        if rng.random() < 0.03:
            topic = rng.choice(list(self._topics))
            self._topics[topic] = self._topics[topic][:1]  # deleted and made again, smaller
        if rng.random() < 0.2:
            name = rng.choice(NAMES)
            if name not in self._topics:
                self._topics[name] = []
                self._grow(name)

    def _some_topics(self) -> list[str]:
        """Choose the topics of a subscription: mostly ones that exist, seldom none."""
        count = 0 if self._rng.random() < 0.02 else self._rng.randint(1, len(self._topics))
        known = self._rng.sample(list(self._topics), count)
        missing = [self._rng.choice(NAMES)] if self._rng.random() < 0.1 else []
        return sorted({*known, *missing})

    def _grow(self, topic: str) -> None:
        rng = self._rng
        replicas = rng.choice([0, 1, 1, 2, 3]) if self._racks else 0
        for _ in range(rng.choice([1, 2, 3, 5, 12])):
            self._topics[topic].append(rng.sample(RACKS, replicas))
