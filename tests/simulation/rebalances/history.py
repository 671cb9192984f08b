"""Run histories of rebalances, and check that the group comes to rest as it should."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.simulation.checkers.checker import Checker
from tests.simulation.history import Bug, History, no_bug
from tests.simulation.rebalances.checkers import CHECKERS, check_idle, check_movement
from tests.simulation.rebalances.member import Slot
from tests.simulation.rebalances.scenario import (
    Action,
    Change,
    Come,
    Cut,
    Go,
    Kill,
    RebalanceScenario,
    Sleep,
)
from tests.simulation.rebalances.settled import find_idle_tasks, find_unrest
from tests.simulation.rebalances.world import STREAMS, RebalanceWorld, Start
from tests.simulation.runtime.process import Blockade
from tests.simulation.steps import DAY_MS, PassDays, inject_fault
from tests.simulation.world import Violation

CheckMovement = Callable[[RebalanceWorld, str, str, Mapping[str, list[str]], list[Start]], str]
RUNNING_MS = 60_000.0
"""The time after the last fault within which every task runs."""
REST_MS = 240_000.0
"""The time after the last fault within which the group is at rest: few tasks move at a time."""
LOOK_MS = 250.0
BACK_MS = 300
IDLE_DAYS = 8
IDLE_MS = 6_000.0
"""The time after days that passed in which members and broker would notice what has expired."""


class RebalanceHistory(History):
    """Represents one run of a scenario of rebalances."""

    world: RebalanceWorld

    def __init__(
        self,
        scenario: RebalanceScenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[Checker]] = CHECKERS,
        check_movement: CheckMovement = check_movement,
    ) -> None:
        world = RebalanceWorld(scenario.setting, scenario.seed)
        super().__init__(world, bug)
        self.scenario = scenario
        self._check_movement = check_movement
        self._all_back_at_ms = 0.0
        """The time at which the last of the killed members that come back has come back."""
        world.checkers = [checker(world) for checker in checkers]

    def run(self) -> Violation | None:
        logging.getLogger("streams").setLevel(logging.CRITICAL + 1)
        return super().run()

    def _run(self) -> None:
        world = self.world
        with world.raise_violations():
            world.start_broker()
        self._advance(10)
        for slot in world.slots[: max(1, len(world.slots) * 2 // 3)]:
            slot.start(0)
        for step in self.scenario.steps:
            self._advance(step.gap_ms)
            self._take(step.action)
        self._settle()
        if world.loop.failures:
            raise Violation("broker", world.loop.failures[0])

    def _leave(self) -> None:
        self.world.end()
        super()._leave()

    def _take(self, action: Action) -> None:
        world = self.world
        match action:
            case Come(number, version):
                world.slots[number].start(version)
            case Go(number):
                world.slots[number].stop()
            case Kill(number, back_after_ms, version):
                slot = world.slots[number]
                slot.kill()
                if back_after_ms >= 0:
                    back_at_ms = world.loop.elapsed_ms + back_after_ms
                    self._all_back_at_ms = max(self._all_back_at_ms, back_at_ms)
                    world.loop.after_ms(back_after_ms, slot.start, version)
            case Sleep() | Cut():
                self._hold_up(action, world.slots[action.member])
            case PassDays(days):
                self._pass_days(days)
            case Change(kind, seed):
                self._settle()
                self._change(kind, Random(seed))
            case fault:
                inject_fault(world, fault)

    @staticmethod
    def _hold_up(action: Sleep | Cut, slot: Slot) -> None:
        match action:
            case Sleep(_, for_ms, True):
                slot.freezes_at_join_ms = for_ms
            case Sleep(_, for_ms) if slot.member is not None:
                slot.member.process.freeze(for_ms)
            case Cut(_, what, for_ms) if slot.member is not None:
                slot.member.process.block(what, for_ms)

    def _settle(self) -> None:
        """Stop all faults, and wait until all are back and the group is at rest."""
        self._heal()
        self._advance(max(self._all_back_at_ms - self.world.loop.elapsed_ms, 0.0) + LOOK_MS)
        try:
            self._wait_until_rest()
        finally:
            self.world.trouble = self.world.setting.trouble
            for member in self.world.members:
                member.process.trouble = self.world.trouble

    def _heal(self) -> None:
        world = self.world
        world.disk.heal()
        world.trouble = 0.0
        for slot in world.slots:
            slot.freezes_at_join_ms = 0
            if slot.member is not None:
                process = slot.member.process
                process.trouble = 0.0
                process.blockade = Blockade.NOTHING
                process.thaw()

    def _wait_until_rest(self) -> None:
        self._wait_until(lambda: find_idle_tasks(self.world), RUNNING_MS)
        self._wait_until(lambda: find_unrest(self.world), REST_MS)

    def _wait_until(self, find_missing: Callable[[], str], within_ms: float) -> None:
        """Wait until nothing is missing; raise Violation if something is for too long."""
        world = self.world
        deadline_ms = world.loop.elapsed_ms + within_ms
        while missing := find_missing():
            for slot in world.slots:
                if slot.member is not None and slot.member.failure is not None:
                    raise Violation("progress", f"{slot.instance_id}: {slot.member.failure}")
            if not world.alive:  # the last one has left
                world.slots[0].start(0)
            if world.loop.elapsed_ms > deadline_ms:
                raise Violation("progress", f"after {within_ms:.0f} ms: {missing}")
            self._advance(LOOK_MS)

    def _change(self, kind: str, random: Random) -> None:
        """Let a member join, leave or restart, or days pass, and check what that has moved."""
        if kind == "days":
            self._pass_days_at_rest()
            return
        if kind == "silence":
            self._leave_in_silence(random)
            return
        world = self.world
        candidates = [slot for slot in world.slots if slot.is_alive == (kind != "join")]
        if not candidates or (kind == "leave" and len(candidates) == 1):
            return
        slot = random.choice(candidates)
        before, starts = world.find_runners(), len(world.starts)
        self._heal()
        match kind:
            case "join":
                slot.start(random.choice([each.version for each in world.alive]))
            case "leave":
                slot.stop()
            case _:
                slot.kill()
                self._advance(BACK_MS)
                slot.start(slot.version)
        self._wait_for_change(slot, kind)
        self._wait_until_rest()
        wrong = self._check_movement(world, kind, slot.instance_id, before, world.starts[starts:])
        if wrong:
            raise Violation("movement", wrong)

    def _leave_in_silence(self, random: Random) -> None:
        """Let a member leave while its group's answers to all others are lost.

        What those told is told no more. Members that miss too much join anew, so that any task may
        move.
        """
        alive = self.world.alive
        if len(alive) == 1:
            return
        leaving = random.choice(alive)
        self._heal()
        leaving.stop()
        for slot in alive:
            if slot is not leaving and slot.member is not None:
                slot.member.process.block(Blockade.ANSWERS, random.choice((500, 1_200)))
        self._wait_for_change(leaving, "leave")
        self._wait_until_rest()

    def _pass_days(self, days: int) -> None:
        self.world.loop.passed_ms += days * DAY_MS
        self.world.log("passed", days)

    def _pass_days_at_rest(self) -> None:
        """Let more days pass than anything is kept, without faults, and check that all stays."""
        world = self.world
        self._heal()
        committed, starts = world.find_committed(), len(world.starts)
        generation = self._find_generation()
        self._pass_days(IDLE_DAYS)
        lost: set[tuple[str, int]] = set()
        for _ in range(int(IDLE_MS / LOOK_MS)):  # what is lost is committed again soon
            self._advance(LOOK_MS)
            lost |= committed - world.find_committed()
        rejoined = self._find_generation() != generation
        if wrong := check_idle(lost, world.starts[starts:], has_rejoined=rejoined):
            raise Violation("idle", f"after {IDLE_DAYS} days {wrong}")
        self._wait_until_rest()

    def _find_generation(self) -> int | None:
        if self.world.rebalances.protocol == STREAMS:
            streams_group = self.world.find_streams_group()
            return None if streams_group is None else streams_group.epoch
        group = self.world.find_group()
        return None if group is None else group.generation

    def _wait_for_change(self, slot: Slot, kind: str) -> None:
        """Wait until a member that is to leave has ended, or one that starts is a member."""
        is_up = kind != "leave"
        self._wait_until(
            lambda: "" if slot.is_alive == is_up else f"{slot.instance_id} does not end", 10_000
        )
