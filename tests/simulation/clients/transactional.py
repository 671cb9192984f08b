"""Run one life of a transactional producer, as librdkafka (v1) or the Java client (v2) does.

Each life begins with InitProducerId, which fences the one before. What a life does when it is
refused follows the tables of the clients: a fenced one is over, an abortable error ends in an
abort, and after an abort that left batches unanswered the epoch is raised (KIP-360), because they
may still arrive. In v2 partitions are added by writing to them, and every end raises the epoch:
whatever comes late, even an EndTxn, has an older epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from coordinator.errors import Code
from tests.simulation.clients.producing import Delivery
from tests.simulation.clients.session import FENCED, Abortable, Fenced, GaveUp, Session
from tests.simulation.ledger import Outcome, Place, SentTransaction
from tests.simulation.world import World

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28


class Life:
    """Represents one producer with a transactional id, from its start to its end.

    `is_over`: it is to be replaced.
    """

    def __init__(self, world: World, transactional_id: str, number: int, trouble: float) -> None:
        self.world = world
        self.is_v2 = world.setting.is_v2(number)
        self.transactional_id = transactional_id
        self.is_over = False
        self.turn = asyncio.Lock()  # one transaction after the other
        self.name = f"{transactional_id}#{number}".encode()
        self.session = Session(world, f"{transactional_id}#{number}", Random(0), trouble)
        self._delivery: Delivery | None = None
        self._registered: set[Place | str] = set()
        self._has_begun = False  # the coordinator may have an open transaction
        self._is_unsure = False  # a batch may still arrive

    async def begin(self) -> SentTransaction:
        """Begin a transaction, after claiming the transactional id if need be.

        Raises Fenced, GaveUp.
        """
        if self._delivery is None:
            await self._init(-1, -1)
        name = self.transactional_id
        sent = SentTransaction(name, self.world.ledger.next_number(name))
        self.world.ledger.transactions.append(sent)
        self._registered = set()
        self._has_begun = False
        self._is_unsure = False
        return sent

    async def write(self, sent: SentTransaction, place: Place, values: Sequence[bytes]) -> None:
        """Write values to a partition.

        Raises Fenced, Abortable, GaveUp.
        """
        delivery = self._owned()
        self._has_begun = True
        if place not in self._registered and not self.is_v2:
            await self._add_partition(place)
        sent.values += [(place, value) for value in values]
        self._is_unsure = True
        half = len(values) // 2 or 1
        parts = [part for part in (values[:half], values[half:]) if part]
        await delivery.deliver([delivery.batch(place, part) for part in parts])
        self._is_unsure = False

    async def stage(self, group_id: str, offsets: Mapping[Place, int]) -> None:
        """Add offsets to the transaction.

        Raises Fenced, Abortable, GaveUp.
        """
        delivery = self._owned()
        self._has_begun = True
        if group_id not in self._registered and not self.is_v2:
            given = {**self._identity(), "group_id": group_id}
            _, code = await self._ask(ADD_OFFSETS, 3, given, lambda answer: answer.error_code)
            self._check(code)
            self._registered.add(group_id)
        given = {
            "transactional_id": self.transactional_id,
            "group_id": group_id,
            "producer_id": delivery.producer_id,
            "producer_epoch": delivery.epoch,
            "generation_id": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partition_index": index,
                            "committed_offset": offset,
                            "committed_metadata": "",
                        }
                    ],
                }
                for (topic, index), offset in sorted(offsets.items())
            ],
        }
        _, code = await self._ask(
            TXN_OFFSET_COMMIT,
            5 if self.is_v2 else 3,
            given,
            lambda answer: answer.topics[0].partitions[0].error_code,
            may_be_late=self.is_v2,
        )
        self._check(code)

    async def commit(self, sent: SentTransaction) -> None:
        """Commit the transaction.

        Raises Fenced, Abortable, GaveUp.
        """
        if not self._has_begun:
            sent.outcome = Outcome.COMMITTED
            return
        sent.outcome = Outcome.UNKNOWN
        code = await self._end(committed=True)
        if code is Code.NONE:
            sent.outcome = Outcome.COMMITTED
            return
        if self.session.is_sure:
            sent.outcome = Outcome.ABORTED
        self._check(code)

    async def abort(self, *, bump: bool = False) -> None:
        """Abort the transaction.

        Raises Fenced, GaveUp.
        """
        if self._has_begun:
            code = await self._end(committed=False)
            if code is not Code.INVALID_TXN_STATE:  # the coordinator has none
                self._check(code)
        if (self._is_unsure and not self.is_v2) or bump:
            delivery = self._owned()
            await self._init(delivery.producer_id, delivery.epoch)

    async def _init(self, producer_id: int, epoch: int) -> None:
        given = {
            "transactional_id": self.transactional_id,
            "transaction_timeout": self.world.setting.transaction_timeout_ms,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        answer, code = await self._ask(
            INIT_PRODUCER_ID, 4, given, lambda answer: answer.error_code, may_be_late=True
        )
        self._check(code)
        self._own(answer)

    def _own(self, answer: Any) -> None:
        self._delivery = Delivery(
            self.session,
            answer.producer_id,
            answer.producer_epoch,
            self.transactional_id,
            version=12 if self.is_v2 else 10,
        )

    async def _add_partition(self, place: Place) -> None:
        topic, index = place
        identity = {f"v3_and_below_{name}": value for name, value in self._identity().items()}
        given = {**identity, "v3_and_below_topics": [{"name": topic, "partitions": [index]}]}
        _, code = await self._ask(
            ADD_PARTITIONS,
            3,
            given,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            may_be_late=True,
        )
        self._check(code)
        self._registered.add(place)

    async def _end(self, *, committed: bool) -> Code:
        # In v1 a late EndTxn could end the next transaction, so it is never late.
        given = {**self._identity(), "committed": committed}
        answer, code = await self._ask(
            END_TXN,
            5 if self.is_v2 else 3,
            given,
            lambda answer: answer.error_code,
            may_be_late=self.is_v2,
        )
        if self.is_v2 and code is Code.NONE:
            self._own(answer)
        return code

    async def _ask(self, *arguments: Any, may_be_late: bool = False) -> tuple[Any, Code]:
        return await self.session.send_request(*arguments, may_be_late=may_be_late)

    def _identity(self) -> dict[str, Any]:
        delivery = self._owned()
        return {
            "transactional_id": self.transactional_id,
            "producer_id": delivery.producer_id,
            "producer_epoch": delivery.epoch,
        }

    def _owned(self) -> Delivery:
        assert self._delivery is not None
        return self._delivery

    def _check(self, code: Code) -> None:
        if code in FENCED:
            raise Fenced(code.name)
        if code is not Code.NONE:
            raise Abortable(code.name)


class Lives:
    """Holds all lives of one transactional id; the newest one gets the work, others may linger."""

    def __init__(self, world: World, transactional_id: str, trouble: float) -> None:
        self._world = world
        self._transactional_id = transactional_id
        self._trouble = trouble
        self._count = 0
        self._current: Life | None = None

    @asynccontextmanager
    async def work(self, random: Random) -> AsyncIterator[Life]:
        """Yield the newest life once it has finished its earlier work.

        It uses `random` from then on. A fenced life, and one that doesn't know the outcome of its
        work, is over.
        """
        life = self._newest()
        while True:
            async with life.turn:
                if not life.is_over:
                    life.session.reseed(random)
                    try:
                        yield life
                    except (Abortable, Fenced, GaveUp):
                        life.is_over = True
                    return
            life = self._newest()

    def _newest(self) -> Life:
        if self._current is None or self._current.is_over:
            self._count += 1
            self._current = Life(self._world, self._transactional_id, self._count, self._trouble)
        return self._current

    def take_over(self) -> None:
        """Give the next work to a new life, without the former one's knowledge."""
        self._current = None
