"""Run histories in which days pass: results are as if none had, or the application refuses.

A refusal must name a cause that the history has (see `refusals`). What was committed before it is
right as far as it goes; what comes out of a history without a refusal is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from streams.runtime.changelogs import version_expiry
from tests.simulation.bugs import replaced
from tests.simulation.history import Bug, no_bug
from tests.simulation.runtime.checkers import Closed, ExactlyOnce, Offsets, Owners, Results
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.days.partial import Partial
from tests.simulation.runtime.days.refusals import Cause, find_cause
from tests.simulation.runtime.days.scenario import CHECKS_MS, DAY_MS, MOVED_MS, DaysScenario
from tests.simulation.runtime.days.steps import (
    Abort,
    AddPartition,
    CutChangelog,
    DeleteChangelog,
    FillChangelog,
    Pass,
    Recreate,
    Replace,
    Rest,
    SetOffsets,
    SetTopic,
    StopAll,
    TryVersion,
)
from tests.simulation.runtime.days.stores import KeptStores
from tests.simulation.runtime.days.world import DaysWorld
from tests.simulation.runtime.history import RuntimeHistory
from tests.simulation.runtime.scenario import Feed
from tests.simulation.runtime.topologies import CHANGELOG, INPUT
from tests.simulation.world import Violation

CHECKERS: tuple[type[RuntimeChecker], ...] = (
    Closed,
    ExactlyOnce,
    Offsets,
    Owners,
    KeptStores,
    Results,
)
OFFSETS_KEPT_MS = 7 * DAY_MS
REWRITE_RECORDS_MIN = 0
"""So that changelogs of versions are written again within a history."""
REST_MS_MAX = 20_000.0
LOOK_MS = 50.0


class Refused(Exception):
    """Signals that the application has refused to go on, by a name that the history allows."""

    def __init__(self, cause: Cause, error: Exception) -> None:
        super().__init__(str(error))
        self.cause = cause


class DaysHistory(RuntimeHistory):
    """Represents one run of a scenario in which days pass; `refusal` is how it ended, if so."""

    world: DaysWorld
    world_type = DaysWorld

    def __init__(
        self,
        scenario: DaysScenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[RuntimeChecker]] = CHECKERS,
    ) -> None:
        super().__init__(scenario, bug, checkers)
        self._stands = False
        """Whether the next records follow the last ones in event time."""
        self.refusal: Refused | None = None

    def _run(self) -> None:
        try:
            with replaced(version_expiry, "REWRITE_RECORDS_MIN", lambda _: REWRITE_RECORDS_MIN):
                super()._run()
        except Refused as refused:
            self.refusal = refused
            Partial(self.world).check_at_rest()

    def _take(self, action: Any) -> None:
        self._find_refusal()
        world = self.world
        match action:
            case Rest():
                self._wait_until(self._is_done)
            case StopAll(killed):
                if killed and world.loop.elapsed_ms < world.aborted_at_ms + MOVED_MS:
                    world.causes.add(Cause.UNMOVED)
                for worker in world.workers:
                    worker.kill() if killed else worker.stop()
                self._wait_until(lambda: not any(each.is_alive for each in world.workers))
            case Replace(machine):
                world.replace_machine(machine)
            case Feed(count, seed) if self._stands:
                self._stands = False
                world.continue_event_time()
                world.feed(count, Random(seed))
            case Pass(days, stands):
                self._pass_days(int(days * DAY_MS), stands=stands)
            case TryVersion(kept_ms):
                self._try_version(kept_ms)
            case (
                Abort()
                | Recreate()
                | DeleteChangelog()
                | FillChangelog()
                | CutChangelog()
                | AddPartition()
                | SetOffsets()
                | SetTopic()
            ):
                self._change_by_hand(action)
            case _:
                super()._take(action)

    def _change_by_hand(self, action: Any) -> None:
        """Let somebody else write to topics, or change topics and offsets."""
        world = self.world
        match action:
            case Abort(number):
                world.abort_on_inputs(number)
                self._wait_until(lambda: not world.is_aborting)
            case Recreate():
                world.recreate(INPUT)
                self._forget_checkers(Offsets, Owners)  # the offsets of another topic are lower
            case DeleteChangelog():
                world.delete(CHANGELOG)
                self._forget_checkers(KeptStores)  # they equal what is gone
            case FillChangelog():
                world.fill_changelog_again(CHANGELOG)
                self._wait_until(lambda: not world.is_aborting)
                self._forget_checkers(KeptStores)
            case CutChangelog(part):
                world.cut_changelog(CHANGELOG, part)
            case AddPartition():
                world.add_partition(INPUT)
            case SetOffsets(back, deletes):
                self._forget_checkers(Offsets)  # it expects that offsets never go back
                world.set_offsets(back, deletes=deletes)
            case SetTopic(topic, name, value):
                world.set_topic(topic, name, value)
                if topic != INPUT and any(each.is_alive for each in world.workers):
                    world.causes.add(Cause.POLICY)

    def _pass_days(self, days_ms: int, *, stands: bool) -> None:
        """Move the wall clock, and let the broker's checks find what has expired."""
        world = self.world
        if not self._is_done():
            world.causes.add(Cause.UNREAD)
        if any(worker.is_alive for worker in world.workers):
            world.empty_ms = 0
        else:
            world.empty_ms += days_ms
            if world.empty_ms >= OFFSETS_KEPT_MS:
                world.causes.add(Cause.OFFSETS)
                self._forget_checkers(Offsets, Owners)  # another group begins, in generation 1
        world.loop.passed_ms += days_ms
        world.log("passed", days_ms)
        self._stands = stands
        self._advance(4 * CHECKS_MS)

    def _try_version(self, kept_ms: int) -> None:
        """Start a version that keeps windows for another time, and stop it when it has refused.

        It must, if records of the changelog are gone. The former version has no cause then.
        """
        world = self.world
        former = world.runtime
        world.runtime = replace(former, kept_ms=kept_ms)
        for worker in world.workers:
            worker.start()
        try:
            self._wait_until(lambda: False)
        except Refused as refused:
            world.log("refused", refused)
        else:
            if Cause.LAYOUT in world.causes:
                raise Violation("refusal", "a store is rebuilt from a changelog that was cut")
        while any(each.is_alive for each in world.workers):
            for worker in world.workers:
                worker.stop()
            self._advance(LOOK_MS)
        for worker in world.workers:
            worker.failures.clear()
        world.causes.discard(Cause.LAYOUT)
        world.runtime = former

    def _forget_checkers(self, *types: type[RuntimeChecker]) -> None:
        """Check some laws no more."""
        world = self.world
        world.listeners = [each for each in world.listeners if not isinstance(each, types)]
        world.checkers = list(world.listeners)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds, at most as long as a step may take."""
        deadline_ms = self.world.loop.elapsed_ms + REST_MS_MAX
        while not condition() and self.world.loop.elapsed_ms < deadline_ms:
            self._find_refusal()
            self._advance(LOOK_MS)

    def _settle(self) -> None:
        self._find_refusal()
        try:
            super()._settle()
        except Violation:
            self._find_refusal()
            raise
        self._find_refusal()

    def _find_unread(self) -> dict[str, tuple[int, int]]:
        """Leave out partitions that never had a record to be read."""
        unread = super()._find_unread()
        for (topic, number), truth in self.world.truths.items():
            if all(entry.committed is False for entry in truth.entries):
                unread.pop(f"{topic}[{number}]", None)
        return unread

    def _find_refusal(self) -> None:
        """Raise Refused if a worker has ended with an error that the history justifies."""
        for worker in self.world.workers:
            for error in worker.failures:
                cause = find_cause(error, self.world.causes)
                if cause is not None:
                    raise Refused(cause, error)
                raise Violation("refusal", f"worker {worker.number}, without a cause: {error}")
