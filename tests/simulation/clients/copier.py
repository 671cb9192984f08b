"""Copy a partition of `input` to `output` in transactions that commit the group's offset."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.conformance.batches import decode
from tests.simulation.clients.session import Abortable
from tests.simulation.clients.transactional import Life, Lives
from tests.simulation.loop import Unanswered
from tests.simulation.world import World

FETCH, OFFSET_FETCH = 1, 9
GROUP = "copiers"


class Copier:
    """Copies values as `<name>|<offset in input>|<transaction>|<value>`.

    Each life has its own position.
    """

    def __init__(self, world: World, name: str, partition: int, trouble: float) -> None:
        self.lives = Lives(world, name, trouble)
        self._world = world
        self._name = name.encode()
        self._place = ("input", partition)
        self._positions: dict[Life, int] = {}

    async def copy(self, commits: bool, pause_ms: float, seed: int) -> None:
        """Copy what is there in one transaction."""
        random = Random(seed)
        async with self.lives.work(random) as life:
            sent = await life.begin()
            try:
                position = self._positions.pop(life, None)
                if position is None:
                    position = await self._committed_offset(life)
                found = await self._fetch(life, position, random)
                for offset, value in found:
                    written = b"%s|%d|%d|%s" % (self._name, offset, sent.number, value)
                    await life.write(sent, ("output", offset % 2), [written])
                if not found:
                    self._positions[life] = position
                    return
                await self._world.loop.sleep_ms(pause_ms)
                position = found[-1][0] + 1
                await life.stage(GROUP, {self._place: position})
                if commits:
                    await life.commit(sent)
                    self._positions[life] = position
                else:
                    await life.abort(bump=random.random() < 0.3)
            except Abortable:
                await life.abort()

    async def _committed_offset(self, life: Life) -> int:
        topic, index = self._place
        asked = {"group_id": GROUP, "topics": [{"name": topic, "partition_indexes": [index]}]}
        answer, _ = await life.session.send_request(
            OFFSET_FETCH,
            8,
            {"groups": [asked], "require_stable": True},
            lambda answer: answer.groups[0].topics[0].partitions[0].error_code,
        )
        offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
        return max(offset, 0)

    async def _fetch(self, life: Life, position: int, random: Random) -> list[tuple[int, bytes]]:
        """Fetch up to a few records from the position; a failed fetch is repeated next time."""
        given = fetch_request(self._place, position, committed=True, max_bytes=300)
        try:
            answer = await life.session.connection.send_request(FETCH, 12, given)
        except Unanswered:
            return []
        [found] = answer.responses[0].partitions
        return [
            (batch.base_offset + number, value or b"")
            for batch in decode(found.records)
            if not batch.is_control
            for number, (_, value) in enumerate(batch.records)
            if batch.base_offset + number >= position
        ][: random.randint(1, 6)]


def fetch_request(
    place: tuple[str, int],
    position: int,
    *,
    committed: bool,
    max_bytes: int,
    max_wait_ms: int = 0,
) -> dict[str, Any]:
    topic, index = place
    return {
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "isolation_level": 1 if committed else 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": index,
                        "fetch_offset": position,
                        "partition_max_bytes": max_bytes,
                    }
                ],
            }
        ],
        "forgotten_topics_data": [],
    }
