"""Consume one partition in either isolation and drop the aborted records, as consumers do.

The broker's list of aborted transactions says which those are.
"""

from __future__ import annotations

from random import Random
from typing import Any

from coordinator.errors import Code
from tests.conformance.batches import decode
from tests.simulation.clients.copier import FETCH, fetch_request
from tests.simulation.clients.session import Session
from tests.simulation.ledger import Place, Seen
from tests.simulation.loop import Unanswered
from tests.simulation.world import COMPACTED, Violation, World


class Reader:
    def __init__(self, world: World, name: str, place: Place, committed: bool) -> None:
        self.seen = Seen(place, committed)
        if place[0] in COMPACTED:
            world.ledger.seen_compacted.append(self.seen)
        else:
            world.ledger.seen.append(self.seen)
        self._session = Session(world, name, Random(name), 0.0)

    async def read(self, max_wait_ms: int, seed: int) -> None:
        """Fetch once from the reader's position."""
        random = Random(seed)
        self._session.reseed(random)
        seen = self.seen
        max_bytes = random.choice((100, 400, 100_000))
        given = fetch_request(
            seen.place,
            seen.position,
            committed=seen.is_committed,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
        )
        try:
            answer = await self._session.connection.send_request(FETCH, 12, given)
        except Unanswered:
            return
        [found] = answer.responses[0].partitions
        code = Code(found.error_code)
        if code is Code.OFFSET_OUT_OF_RANGE:
            raise Violation("watermarks", f"{seen.place}: {seen.position} is out of range")
        if code is Code.NONE:
            self._take(found)

    async def catch_up(self) -> None:
        """Fetch until there is nothing more."""
        before = -1
        while before < self.seen.position:
            before = self.seen.position
            await self.read(0, before)

    def _take(self, found: Any) -> None:
        seen = self.seen
        first_offsets = sorted(
            (a.first_offset, a.producer_id) for a in found.aborted_transactions or ()
        )
        aborted: set[int] = set()
        for batch in decode(found.records):
            while first_offsets and first_offsets[0][0] <= batch.last_offset:
                aborted.add(first_offsets.pop(0)[1])
            if batch.is_control:
                aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                for offset, (_, value) in zip(batch.offsets, batch.records, strict=True):
                    if offset >= seen.position:
                        seen.values.append((offset, value or b""))
            seen.position = batch.last_offset + 1
