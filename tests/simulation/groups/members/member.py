"""Simulate one life of a member of any protocol: requests, pauses, commits, and its end.

A member has a position in each partition that it owns. The metadata of each commit are unique. A
member that hangs does nothing at all, not even what a response requires; then it goes on as if
nothing had happened. One that was
killed may still have a request in transit: its identity commits once more (`haunt`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from coordinator.errors import Code
from tests.simulation.groups.world import GroupWorld
from tests.simulation.ledger import Place
from tests.simulation.loop import Unanswered
from tests.simulation.network import REQUEST_TIMEOUT_MS, Connection

METADATA, OFFSET_COMMIT, OFFSET_FETCH = 3, 8, 9
RETRY_MS = 100.0
CONSUMER = "consumer"
# These carry a member's owned partitions. If they came when it owns others, no broker could see
# that; Kafka, too, takes them in the order of one connection.
NEVER_LATE = frozenset({11, 68})  # JoinGroup, ConsumerGroupHeartbeat
# The broker is away, or another one leads the group: the request is repeated.
RETRIABLE = frozenset(
    {
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
    }
)


@dataclass(frozen=True, slots=True)
class Interest:
    """Holds the wanted topics, or a prefix of their names."""

    topics: tuple[str, ...] = ()
    prefix: str | None = None

    def names(self, topics: Collection[str]) -> tuple[str, ...]:
        if self.prefix is None:
            return self.topics
        return tuple(sorted(name for name in topics if name.startswith(self.prefix)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Holds what is the same in all lives of a host."""

    name: str
    group_id: str
    protocol: str  # eager, cooperative, or consumer
    classic: str  # eager or cooperative: what it is when it isn't a consumer
    assignors: tuple[str, ...]  # of a classic member, the preferred one first
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_ms: int
    version: int  # of JoinGroup

    @property
    def is_consumer(self) -> bool:
        return self.protocol == CONSUMER

    def switched(self) -> Profile:
        """Return the profile of the same host with the other protocol."""
        return replace(self, protocol=self.classic if self.is_consumer else CONSUMER)


class Member(ABC):
    """Represents one life of a member; `is_over`: it has left, was killed, or refused for good."""

    def __init__(
        self, world: GroupWorld, profile: Profile, name: str, interest: Interest, random: Random
    ) -> None:
        self.world = world
        self.profile = profile
        self.name = name
        self.interest = interest
        self.owned: dict[Place, int] = {}
        self.member_id = ""
        self.epoch = -1  # a classic member's generation
        self.is_over = False
        self.is_leaving = False
        self.random = random
        self._connection = Connection(world, name, random, world.setting.trouble)
        self._commits = 0
        self._committed: deque[dict[str, Any]] = deque(maxlen=3)  # the last requests
        self._hangs_until_ms = 0.0
        self._bell: asyncio.Future[None] | None = None
        self._thaw: asyncio.Future[None] | None = None
        self._task = world.spawn(self._live())

    @abstractmethod
    def is_steady(self, topics: Mapping[str, int]) -> bool:
        """Return whether, with these topics, it has nothing to take, to revoke, or to report."""

    @abstractmethod
    async def live(self) -> None:
        """Run the member until its life is over."""

    # Effects of steps

    def hang(self, for_ms: float) -> None:
        self._hangs_until_ms = self.world.loop.elapsed_ms + for_ms

    def leave(self) -> None:
        self.is_leaving = True
        self._ring()

    def want(self, interest: Interest) -> None:
        self.interest = interest
        self._ring()

    def kill(self) -> None:
        """Kill the member without a message to the broker."""
        self.is_over = True
        self._task.cancel()
        self._connection.cut()

    def heal(self) -> None:
        """Stop all faults of the member and its network; it learns now what is lost already."""
        self._hangs_until_ms = 0.0
        _wake(self._thaw)
        self._connection.trouble = 0.0
        self._connection.cut()

    async def haunt(self) -> None:
        """Send the commit of a killed member that was in transit, for all that it owned."""
        if self.owned:
            await self.commit()

    async def echo(self) -> None:
        """Send a former commit of the member once more, on another connection."""
        if self._committed:
            connection = Connection(self.world, f"{self.name} echo", self.random, 0.0)
            with suppress(Unanswered):
                await connection.send_request(OFFSET_COMMIT, 9, self._committed[0])
            connection.cut()

    # Requests of every member

    async def send_request(
        self, api_key: int, version: int, given: dict[str, Any], timeout_ms: float | None = None
    ) -> Any | None:
        """Send a request; return the response, or None if its outcome is unknown."""
        await self._awake()
        try:
            answer = await self._connection.send_request(
                api_key,
                version,
                given,
                may_be_late=api_key not in NEVER_LATE,
                timeout_ms=timeout_ms or REQUEST_TIMEOUT_MS,
            )
        except Unanswered:
            answer = None
        await self._awake()
        return answer

    async def pause_for(self, for_ms: float) -> None:
        """Wait for so long, or until there is something else to do."""
        self._bell = bell = self.world.loop.create_future()
        call = self.world.loop.after_ms(for_ms, self._ring)
        try:
            await bell
        finally:
            call.cancel()

    async def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        given = {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        while True:
            answer = await self.send_request(METADATA, 12, given)
            if answer is not None:
                return {t.name: len(t.partitions) for t in answer.topics if not t.is_internal}
            await self.pause_for(RETRY_MS)

    async def commit(self) -> Code | None:
        """Commit all owned partitions at a later position.

        Returns the group's code; None if the outcome is unknown.
        """
        if not self.owned:
            return Code.NONE
        self._commits += 1
        for place in self.owned:
            self.owned[place] += self.random.randint(1, 5)
        by_topic = _by_topic(sorted(self.owned))
        metadata = f"{self.name}|{self._commits}"
        given = {
            "group_id": self.profile.group_id,
            "generation_id_or_member_epoch": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.profile.instance_id,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partition_index": index,
                            "committed_offset": self.owned[topic, index],
                            "committed_metadata": metadata,
                        }
                        for index in indexes
                    ],
                }
                for topic, indexes in by_topic.items()
            ],
        }
        self._committed.append(given)
        answer = await self.send_request(OFFSET_COMMIT, 9, given)
        if answer is None:
            return None
        codes = {Code(p.error_code) for topic in answer.topics for p in topic.partitions}
        return max(codes - {Code.UNKNOWN_TOPIC_OR_PARTITION}, default=Code.NONE)

    async def own(self, places: Collection[Place], epoch: int) -> Code | None:
        """Own these partitions from the group's committed offsets, if that returns NONE."""
        group = {
            "group_id": self.profile.group_id,
            "member_id": self.member_id if epoch >= 0 else None,
            "member_epoch": epoch,
            "topics": [
                {"name": topic, "partition_indexes": indexes}
                for topic, indexes in _by_topic(sorted(places)).items()
            ],
        }
        answer = await self.send_request(
            OFFSET_FETCH, 9, {"groups": [group], "require_stable": True}
        )
        if answer is None:
            return None
        [found] = answer.groups
        code = Code(found.error_code)
        if code is Code.NONE:
            for topic in found.topics:
                for each in topic.partitions:
                    place = topic.name, each.partition_index
                    self.owned[place] = max(0, each.committed_offset)
        return code

    async def _live(self) -> None:
        await self.live()
        self.is_over = True

    async def _awake(self) -> None:
        while (left_ms := self._hangs_until_ms - self.world.loop.elapsed_ms) > 0:
            self._thaw = thaw = self.world.loop.create_future()
            self.world.loop.after_ms(left_ms, _wake, thaw)
            await thaw

    def _ring(self) -> None:
        _wake(self._bell)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _by_topic(places: Sequence[Place]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    return topics
