"""Produce without transactions: every value once and in order, whatever fails on the way."""

from __future__ import annotations

from random import Random

from coordinator.errors import Code
from tests.simulation.clients.producing import Delivery
from tests.simulation.clients.session import GaveUp, Session
from tests.simulation.world import World

INIT_PRODUCER_ID = 22


class IdempotentProducer:
    """Produces values `<name>|<number>` with growing numbers."""

    def __init__(self, world: World, name: str, trouble: float) -> None:
        self._world = world
        self._name = name
        self._session = Session(world, name, Random(name), trouble)
        self._delivery: Delivery | None = None

    async def produce(self, partition: int, count: int, seed: int) -> None:
        """Produce so many batches to one partition of `input`."""
        random = Random(seed)
        self._session.reseed(random)
        try:
            if self._delivery is None:
                self._delivery = await self._begin()
            batches = []
            for _ in range(count):
                values = [self._value() for _ in range(random.randint(1, 3))]
                batches.append(self._delivery.batch(("input", partition), values))
            await self._delivery.deliver(batches)
        except GaveUp:
            self._delivery = None  # what comes next is another producer's

    def _value(self) -> bytes:
        return b"%s|%d" % (self._name.encode(), self._world.ledger.next_number(self._name))

    async def _begin(self) -> Delivery:
        answer, code = await self._session.send_request(
            INIT_PRODUCER_ID,
            4,
            {"transactional_id": None, "transaction_timeout": 1_000},
            lambda answer: answer.error_code,
            may_be_late=True,
        )
        assert code is Code.NONE, code
        return Delivery(self._session, answer.producer_id, answer.producer_epoch)
