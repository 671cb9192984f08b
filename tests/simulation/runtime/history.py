"""Run histories of the runtime, in which workers and broker fail, and check that all recovers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random

from tests.simulation.history import Bug, History, no_bug
from tests.simulation.runtime.checkers import CHECKERS, RuntimeChecker
from tests.simulation.runtime.installed import installed
from tests.simulation.runtime.process import Blockade, Process
from tests.simulation.runtime.scenario import (
    Action,
    Cut,
    Damage,
    Feed,
    Freeze,
    Kill,
    Leave,
    LoseCoordinator,
    Moment,
    RuntimeScenario,
    SilenceCoordinator,
    Start,
    Wait,
)
from tests.simulation.runtime.topologies import INPUT, TIMED
from tests.simulation.runtime.worker import SimWorker
from tests.simulation.runtime.world import RuntimeWorld
from tests.simulation.steps import inject_fault
from tests.simulation.world import Violation

PROGRESS_MS = 60_000.0
"""The time after the last fault within which all input is processed."""
REST_MS = 5_000.0
FIRST_MS = 500.0
LOOK_MS = 200.0


class RuntimeHistory(History):
    """Represents one run of a scenario of the runtime."""

    world: RuntimeWorld
    world_type: type[RuntimeWorld] = RuntimeWorld

    def __init__(
        self,
        scenario: RuntimeScenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[RuntimeChecker]] = CHECKERS,
    ) -> None:
        world = self.world_type(scenario.setting, scenario.seed)
        super().__init__(world, bug)
        self.scenario = scenario
        world.listeners = [checker(world) for checker in checkers]
        world.checkers = list(world.listeners)

    def run(self) -> Violation | None:
        logging.getLogger("streams").setLevel(logging.CRITICAL + 1)
        with installed(self.world):
            return super().run()

    def _run(self) -> None:
        world = self.world
        with world.raise_violations():
            world.start_broker()
        world.feed_first()
        self._advance(10 if world.is_fed else FIRST_MS)
        for worker in world.workers:
            worker.start()
        for step in self.scenario.steps:
            self._advance(step.gap_ms)
            self._take(step.action)
        self._heal()
        self._settle()
        if self.world.runtime.kind in TIMED:
            self.world.close()
            self._settle()
        if world.loop.failures:
            raise Violation("broker", world.loop.failures[0])
        for checker in world.checkers:
            checker.check_at_rest()

    def _leave(self) -> None:
        self.world.end()
        super()._leave()

    def _take(self, action: Action) -> None:
        world = self.world
        match action:
            case Feed(count, seed):
                if world.runtime.kind in TIMED and self._is_done():
                    world.leap()
                world.feed(count, Random(seed))
            case Kill(number, at, in_write, back_after_ms):
                worker = world.workers[number]
                worker.back_after_ms = back_after_ms
                if in_write < 0:
                    self._act_on_worker(worker, at, Process.kill)
                elif worker.process is not None:
                    worker.process.dies_in_write = in_write
            case Start(number):
                world.workers[number].start()
            case Leave(number):
                world.workers[number].stop()
            case Freeze() | Cut() | LoseCoordinator():
                self._act_on_worker(world.workers[action.worker], action.at, action.happen_to)
            case SilenceCoordinator(partition, for_ms):
                world.silence_coordinator(f"{INPUT}_{partition}", for_ms)
            case Damage(number, seed):
                world.workers[number].machine.damage(Random(seed))
            case Wait(for_ms):
                self._advance(for_ms)
            case fault:
                inject_fault(world, fault)

    @staticmethod
    def _act_on_worker(worker: SimWorker, at: Moment, action: Callable[[Process], None]) -> None:
        """Act on a worker now, or when it gets to the step."""
        if at is not None:
            worker.plans.append((at, action))
        elif worker.process is not None:
            action(worker.process)

    def _heal(self) -> None:
        """Stop all faults; what is down comes back once it has ended."""
        world = self.world
        world.disk.heal()
        world.trouble = world.slow_markers = world.late_partitions = 0.0
        world.let_coordinators_answer()
        for worker in world.workers:
            worker.plans = []
            if worker.process is not None:
                worker.process.trouble = 0.0
                worker.process.dies_in_write = -1
                worker.process.blockade = Blockade.NOTHING
                worker.process.find_coordinator()
                worker.process.thaw()
        world.feed(4, Random(world.seed))

    def _settle(self) -> None:
        world = self.world
        deadline_ms = world.loop.elapsed_ms + PROGRESS_MS
        while not self._is_done():
            if world.loop.elapsed_ms > deadline_ms:
                raise Violation("progress", f"after {PROGRESS_MS:.0f} ms: {self._find_unread()}")
            for worker in world.workers:
                if worker.failures:
                    raise Violation("progress", f"worker {worker.number}: {worker.failures[0]}")
                worker.start()
            self._advance(LOOK_MS)
        self._advance(REST_MS)

    def _is_done(self) -> bool:
        return self.world.is_listening and self.world.is_fed and not self._find_unread()

    def _find_unread(self) -> dict[str, tuple[int, int]]:
        """Return the committed and end offset of all partitions that are not read to the end."""
        world = self.world
        if not world.is_listening:
            return {"broker": (0, 0)}
        left = {}
        for place, truth in world.truths.items():
            if place[0] in world.sources:
                offset, _ = world.committed_offset(*place)
                last = max(
                    (e.offset for e in truth.entries if e.committed is not False), default=-1
                )
                if offset <= last:
                    left[f"{place[0]}[{place[1]}]"] = offset, truth.end_offset
        return left
