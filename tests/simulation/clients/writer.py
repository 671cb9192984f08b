"""Write transactions over `latest` and the partitions of `table`, each wholly or not at all."""

from __future__ import annotations

from random import Random

from tests.simulation.clients.session import Abortable
from tests.simulation.clients.transactional import Life, Lives
from tests.simulation.ledger import SentTransaction
from tests.simulation.world import World


class Writer:
    """Writes values `<name>#<life>|<transaction>|<number>`."""

    def __init__(self, world: World, name: str, trouble: float) -> None:
        self.lives = Lives(world, name, trouble)
        self._world = world

    async def transact(self, writes: int, commits: bool, pause_ms: float, seed: int) -> None:
        """Run one transaction, with a pause somewhere before its end."""
        random = Random(seed)
        pause_at = random.randint(0, writes)
        async with self.lives.work(random) as life:
            sent = await life.begin()
            try:
                for number in range(writes):
                    if number == pause_at:
                        await self._world.loop.sleep_ms(pause_ms)
                    await self._write(life, sent, number, random)
                if pause_at == writes:
                    await self._world.loop.sleep_ms(pause_ms)
                if commits:
                    await life.commit(sent)
                else:
                    await life.abort(bump=random.random() < 0.3)
            except Abortable:
                await life.abort()

    async def _write(self, life: Life, sent: SentTransaction, number: int, random: Random) -> None:
        place = random.choice((("table", 0), ("table", 1), ("latest", 0)))
        values = [
            b"%s|%d|%d" % (life.name, sent.number, number * 10 + each)
            for each in range(random.randint(1, 4))
        ]
        await life.write(sent, place, values)
