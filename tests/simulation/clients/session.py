"""Retry requests until the broker's response is final, as all clients do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from coordinator.errors import Code
from tests.simulation.loop import Unanswered
from tests.simulation.network import Connection
from tests.simulation.world import World

PATIENCE_MS = 15_000
RETRY_MS = 60

RETRIABLE = frozenset(
    {
        Code.UNKNOWN_TOPIC_OR_PARTITION,  # while the broker that makes it comes and goes
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.REQUEST_TIMED_OUT,
        Code.NETWORK_EXCEPTION,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
        Code.NOT_ENOUGH_REPLICAS,
        Code.CONCURRENT_TRANSACTIONS,
        Code.KAFKA_STORAGE_ERROR,
        Code.UNSTABLE_OFFSET_COMMIT,
    }
)
FENCED = frozenset(
    {Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_ID_MAPPING}
)


class GaveUp(Exception):
    """Reports that a client retried for too long, so that the outcome is unknown."""


class Fenced(Exception):
    """Reports that another producer has fenced this one."""


class Abortable(Exception):
    """Reports that the transaction can only be aborted."""


class Session:
    """Represents a client with one connection.

    `is_sure` after a call: no try of it went unanswered.
    """

    def __init__(self, world: World, name: str, random: Random, trouble: float) -> None:
        self.world = world
        self.name = name
        self.connection = Connection(world, name, random, trouble)
        self.is_sure = True

    def reseed(self, random: Random) -> None:
        """Use this random generator for everything from now on."""
        self.connection.random = random

    async def send_request(
        self,
        api_key: int,
        version: int,
        given: dict[str, Any],
        code_of: Callable[[Any], int],
        *,
        may_be_late: bool = False,
        patience_ms: float = PATIENCE_MS,
    ) -> tuple[Any, Code]:
        """Send a request until its code is final; return the response and the code.

        Raises GaveUp.
        """
        loop = self.world.loop
        deadline_ms = loop.elapsed_ms + patience_ms
        self.is_sure = True
        while True:
            try:
                answer = await self.connection.send_request(
                    api_key, version, given, may_be_late=may_be_late
                )
            except Unanswered:
                self.is_sure = False
            else:
                code = Code(code_of(answer))
                if code not in RETRIABLE:
                    return answer, code
            if loop.elapsed_ms > deadline_ms:
                raise GaveUp(f"{self.name}: API {api_key}")
            await loop.sleep_ms(RETRY_MS)
