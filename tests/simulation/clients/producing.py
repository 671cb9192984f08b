"""Deliver batches idempotently: numbered by partition, several in transit, resent in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from coordinator.errors import Code
from tests.conformance.batches import encode
from tests.simulation.clients.session import (
    FENCED,
    PATIENCE_MS,
    RETRIABLE,
    RETRY_MS,
    Abortable,
    Fenced,
    GaveUp,
    Session,
)
from tests.simulation.ledger import Acknowledged, Place
from tests.simulation.loop import Unanswered
from tests.simulation.world import COMPACTED, Violation

PRODUCE = 0
IN_FLIGHT = 5
DAY_MS = 86_400_000
TAKEN = frozenset({Code.NONE, Code.DUPLICATE_SEQUENCE_NUMBER})
ABORTABLE = frozenset(
    {Code.INVALID_TXN_STATE, Code.TRANSACTION_ABORTABLE, Code.OUT_OF_ORDER_SEQUENCE_NUMBER}
)


def key_of(value: bytes) -> bytes:
    """Return the key of a value, one of a few."""
    return b"key-%d" % (crc32(value) % 4)


@dataclass(frozen=True, slots=True)
class Batch:
    place: Place
    sequence: int
    values: tuple[bytes, ...]


class Delivery:
    """Numbers the batches of one producer id and epoch and brings them to the log."""

    def __init__(
        self,
        session: Session,
        producer_id: int,
        epoch: int,
        transactional_id: str | None = None,
        version: int = 10,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self._session = session
        self._transactional_id = transactional_id
        self._version = version
        self._next: dict[Place, int] = {}
        self._known: set[Place] = set()  # where a batch has been acknowledged
        self._delivered_at_ms = session.world.loop.now_ms()

    def batch(self, place: Place, values: Sequence[bytes]) -> Batch:
        sequence = self._next.get(place, 0)
        self._next[place] = sequence + len(values)
        return Batch(place, sequence, tuple(values))

    async def deliver(self, batches: Sequence[Batch]) -> None:
        """Deliver all batches to one partition, in order.

        Raises GaveUp, Fenced or Abortable; what was not acknowledged by then may be in the log or
        not.
        """
        loop = self._session.world.loop
        deadline_ms = loop.elapsed_ms + PATIENCE_MS
        waiting = list(batches)
        if loop.now_ms() - self._delivered_at_ms >= DAY_MS:
            self._known.clear()  # it may be forgotten: any sequence is its first one there
        self._delivered_at_ms = loop.now_ms()
        while waiting:
            if loop.elapsed_ms > deadline_ms:
                raise GaveUp(f"{self._session.name}: {waiting[0]}")
            # Before a producer's first batch a partition accepts any sequence.
            window = IN_FLIGHT if waiting[0].place in self._known else 1
            sent = [(batch, self._send(batch)) for batch in waiting[:window]]
            retry = False
            for batch, answer in sent:
                try:
                    found = (await answer).responses[0].partition_responses[0]
                except Unanswered:
                    retry = True
                    continue
                code = Code(found.error_code)
                if code in TAKEN:
                    waiting.remove(batch)
                    self._acknowledged(batch, found.base_offset)
                elif code is Code.OUT_OF_ORDER_SEQUENCE_NUMBER and batch is not waiting[0]:
                    retry = True  # behind one that was not taken
                else:
                    self._check(code, batch)
                    retry = True
            if retry:
                await loop.sleep_ms(RETRY_MS)

    def _check(self, code: Code, batch: Batch) -> None:
        if code in FENCED:
            raise Fenced(code.name)
        if self._transactional_id is not None and code in ABORTABLE:
            raise Abortable(code.name)
        if code not in RETRIABLE:
            raise Violation("exactly_once", f"{self._session.name} was told {code.name}: {batch}")

    def _send(self, batch: Batch) -> Any:
        topic, index = batch.place
        values = batch.values
        records = encode(
            *([(key_of(value), value) for value in values] if topic in COMPACTED else values),
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=batch.sequence,
            transactional=self._transactional_id is not None,
            timestamps_ms=[self._session.world.loop.now_ms()] * len(values),
        )
        given = {
            "transactional_id": self._transactional_id,
            "acks": -1,
            "timeout": 1_000,
            "topic_data": [
                {"name": topic, "partition_data": [{"index": index, "records": records}]}
            ],
        }
        return self._session.connection.send(PRODUCE, self._version, given, may_be_late=True)

    def _acknowledged(self, batch: Batch, base_offset: int) -> None:
        self._known.add(batch.place)
        ledger = self._session.world.ledger
        ledger.acknowledged.append(Acknowledged(batch.place, base_offset, batch.values))
