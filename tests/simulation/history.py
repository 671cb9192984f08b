"""From a scenario to what became of it: runs a world through its steps, and brings it to rest."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from zlib import crc32

from tests.simulation.checkers import CHECKERS, Checker
from tests.simulation.clients.copier import Copier
from tests.simulation.clients.idempotent import IdempotentProducer
from tests.simulation.clients.reader import Reader
from tests.simulation.clients.transactional import Lives
from tests.simulation.clients.writer import Writer
from tests.simulation.scenario import (
    COPIERS,
    PRODUCERS,
    WRITERS,
    BadDisk,
    Copy,
    Crash,
    Look,
    Produce,
    Read,
    Scenario,
    Step,
    Stop,
    TakeOver,
    Transact,
)
from tests.simulation.world import COMPACTED, TOPICS, Violation, World, quiet

Bug = Callable[[World], AbstractContextManager[None]]

WORK_MS = 40_000.0  # for what clients have begun, once the last step was taken
REST_MS = 15_000.0  # for transactions that nobody ends
SHRINKING_RUNS = 120


def no_bug(world: World) -> AbstractContextManager[None]:
    return nullcontext()


class History:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[Checker]] = CHECKERS,
    ) -> None:
        self.scenario = scenario
        self.world = World(scenario.setting, scenario.seed)
        self._bug = bug
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

    def run(self) -> Violation | None:
        """What was violated, if anything was."""
        quiet()
        with self._bug(self.world):
            try:
                self._run()
            except Violation as violation:
                return violation
            except Exception as error:
                return Violation("client", f"{type(error).__name__}: {error}")
            finally:
                self._leave()
        return None

    def _leave(self) -> None:
        """Nothing of this world goes on."""
        world = self.world
        world.checkers = []
        world.is_listening = False
        world.life += 1
        world.abandon()
        for connection in tuple(world.connections):
            connection.cut()
        self._advance(0)

    def _run(self) -> None:
        world = self.world
        with world.looking():
            world.start_broker()
        self._advance(10)
        for step in self.scenario.steps:
            self._advance(step.gap_ms)
            self._take(step)
        world.disk.failing = 0
        self._advance(WORK_MS, lambda: not world.is_busy)
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
        self._advance(WORK_MS, lambda: not world.is_busy)
        if world.loop.failures:
            raise Violation("broker", world.loop.failures[0])
        for checker in world.checkers:
            checker.ended()

    def _advance(self, ms: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        self.world.loop.run_until(self.world.loop.elapsed_ms + ms, is_enough)

    def _take(self, step: Step) -> None:
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
            case Crash(in_changes, power, down_ms):
                world.crash(down_ms, in_changes, power=power)
            case Stop(down_ms):
                world.stop(down_ms)
            case BadDisk(writes):
                world.disk.failing = writes
            case Look():
                world.look()

    def _lives(self, name: str) -> Lives:
        kind, _, number = name.partition("-")
        clients = self._writers if kind == "writer" else self._copiers
        return clients[int(number)].lives

    def _do(self, client: object, work: Coroutine[Any, Any, None]) -> None:
        """After what this client has to do already."""
        self._turns[client] = self.world.spawn(_behind(self._turns.get(client), work))

    @property
    def fingerprint(self) -> int:
        """Equal for two runs that were the same in every request, answer and time."""
        return crc32("\n".join(self.world.trace).encode())


async def _behind(before: Any, work: Coroutine[Any, Any, None]) -> None:
    try:
        if before is not None:
            await before
    except BaseException:
        work.close()
        raise
    await work


def shortest(scenario: Scenario, violation: Violation, bug: Bug = no_bug) -> Scenario:
    """The scenario with as few of its steps as still violate the same law, found in a bounded
    number of runs: ever smaller pieces are left out, and stay out if it fails without them."""
    runs = 0
    size = max(1, len(scenario.steps) // 2)
    while True:
        start = 0
        shrunk = False
        while start < len(scenario.steps) and runs < SHRINKING_RUNS:
            runs += 1
            shorter = scenario.without(start, start + size)
            found = History(shorter, bug).run()
            if found is not None and found.checker == violation.checker:
                scenario, shrunk = shorter, True
            else:
                start += size
        if runs >= SHRINKING_RUNS or (size == 1 and not shrunk):
            return scenario
        size = max(1, size // 2)


def verdict(scenario: Scenario, bug: Bug = no_bug) -> str:
    """Nothing, or what failed, with the shortest history found."""
    violation = History(scenario, bug).run()
    if violation is None:
        return ""
    short = shortest(scenario, violation, bug)
    return (
        f"seed {scenario.seed}: {violation}\n"
        f"the shortest history found, {len(short.steps)} of {len(scenario.steps)} steps, violates "
        f"{History(short, bug).run()}\n{short}"
    )
