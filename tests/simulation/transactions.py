"""Run histories of transactions: producers, copiers and readers on a broker that crashes."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from tests.simulation.checkers import CHECKERS, Checker
from tests.simulation.clients.copier import Copier
from tests.simulation.clients.idempotent import IdempotentProducer
from tests.simulation.clients.reader import Reader
from tests.simulation.clients.transactional import Lives
from tests.simulation.clients.writer import Writer
from tests.simulation.history import Bug, History, no_bug
from tests.simulation.scenario import (
    COPIERS,
    PRODUCERS,
    WRITERS,
    Action,
    Copy,
    Produce,
    Read,
    TakeOver,
    Transact,
    TransactionScenario,
)
from tests.simulation.steps import DAY_MS, PassDays, Step, inject_fault
from tests.simulation.world import COMPACTED, TOPICS, Violation, World

WORK_MS = 40_000.0  # for what clients have begun, once the last step was taken
LATE_MS = 5_000.0  # after which no request arrives that nobody waits for
CHECKED_MS = 500.0  # for the broker to find what has expired
REST_MS = 15_000.0  # for transactions that nobody ends


class TransactionHistory(History):
    """Represents one run of a scenario of transactions."""

    def __init__(
        self,
        scenario: TransactionScenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[Checker]] = CHECKERS,
    ) -> None:
        super().__init__(World(scenario.setting, scenario.seed), bug)
        self.scenario = scenario
        trouble = scenario.setting.trouble
        world = self.world
        world.checkers = [checker(world) for checker in checkers]
        self._producers = [
            IdempotentProducer(world, f"producer-{i}", trouble) for i in range(PRODUCERS)
        ]
        self._writers = [Writer(world, f"writer-{i}", trouble) for i in range(WRITERS)]
        self._copiers = [Copier(world, f"copier-{i}", i, trouble) for i in range(COPIERS)]
        self._readers = [
            Reader(world, f"reader-{topic}-{index}-{committed}", (topic, index), committed)
            for topic, count in TOPICS.items()
            for index in range(count)
            for committed in (True, False)
        ]
        self._turns: dict[object, Any] = {}  # what each client does last, of what it has to do

    def _run(self) -> None:
        world = self.world
        with world.raise_violations():
            world.start_broker()
        self._advance(10)
        for step in self.scenario.steps:
            self._advance(step.gap_ms)
            self._take(step)
        world.disk.failing = 0
        hanging = self._work()
        world.abandon()
        for connection in tuple(world.connections):
            connection.cut()
        self._advance(REST_MS)
        compacted = [
            Reader(world, f"reader-{name}", (name, index), True)
            for name, count in COMPACTED.items()
            for index in range(count)
        ]
        for reader in (*self._readers, *compacted):
            self._do(reader, reader.catch_up())
        hanging += self._work()
        if world.loop.failures:
            raise Violation("broker", world.loop.failures[0])
        for checker in world.checkers:
            checker.check_at_rest()
        if hanging:  # after the checkers, which say more about why a client hangs
            raise Violation("progress", f"after {WORK_MS:.0f} ms hang {hanging}")

    def _work(self) -> list[str]:
        """Let the clients finish what they have begun; return what hangs."""
        self._advance(WORK_MS, lambda: not self.world.is_busy)
        return self.world.unfinished

    def _take(self, step: Step[Action]) -> None:
        world = self.world
        match step.action:
            case Produce(producer, partition, batches, seed):
                client = self._producers[producer]
                self._do(client, client.produce(partition, batches, seed))
            case Transact(number, writes, commits, pause_ms, seed):
                writer = self._writers[number]
                self.world.spawn(writer.transact(writes, commits, pause_ms, seed))
            case Copy(number, commits, pause_ms, seed):
                copier = self._copiers[number]
                self.world.spawn(copier.copy(commits, pause_ms, seed))
            case TakeOver(name):
                self._lives(name).take_over()
            case Read(max_wait_ms, seed):
                for reader in self._readers:
                    self._do(reader, reader.read(max_wait_ms, seed))
            case PassDays(days):
                self._pass_days(days)
            case fault:
                inject_fault(world, fault)

    def _pass_days(self, days: int) -> None:
        """Let days pass once all is done and nothing is in transit any more, if that comes."""
        self._advance(WORK_MS, lambda: not self.world.is_busy)
        self._advance(LATE_MS)
        if self.world.is_busy:
            return
        self.world.loop.passed_ms += days * DAY_MS
        self.world.log("passed", days)
        self._advance(CHECKED_MS)

    def _lives(self, name: str) -> Lives:
        kind, _, number = name.partition("-")
        clients = self._writers if kind == "writer" else self._copiers
        return clients[int(number)].lives

    def _do(self, client: object, work: Coroutine[Any, Any, None]) -> None:
        """Run a client's work after what it has to do already."""
        self._turns[client] = self.world.spawn(_behind(self._turns.get(client), work))


async def _behind(before: Any, work: Coroutine[Any, Any, None]) -> None:
    try:
        if before is not None:
            await before
    except BaseException:
        work.close()
        raise
    await work
