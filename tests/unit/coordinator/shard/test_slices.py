"""Test that long work runs in slices, ends, lets others run, and can be stopped."""

from __future__ import annotations

import pytest

from coordinator.shard.slices import SLICE_MS, Sliced, SlicedExecutor, run_to_completion
from tests.unit.coordinator.fakes import FakeClock


class Steps:
    """Represents work of so many steps, each of which takes `ms`."""

    def __init__(self, clock: FakeClock, count: int, ms: int = 0) -> None:
        self.taken = 0
        self.is_closed = False
        self._clock = clock
        self._count = count
        self._ms = ms

    def work(self) -> Sliced[str]:
        try:
            for _ in range(self._count):
                self.taken += 1
                self._clock.spend(self._ms)
                yield
            return "done"
        finally:
            self.is_closed = True


def test_short_work_is_done_at_once() -> None:
    clock = FakeClock()
    found: list[str | Exception] = []
    SlicedExecutor(clock, clock).run_in_slices(Steps(clock, 2).work(), found.append)
    assert found == ["done"]
    assert clock.scheduled() == 0


def test_a_slice_ends_when_its_time_is_over() -> None:
    clock = FakeClock()
    steps = Steps(clock, 5, ms=1)
    found: list[str | Exception] = []
    SlicedExecutor(clock, clock).run_in_slices(steps.work(), found.append)
    assert (steps.taken, found) == (SLICE_MS, [])
    clock.advance(100)
    assert (steps.taken, found) == (5, ["done"])


def test_works_take_turns_and_let_others_in_between() -> None:
    clock = FakeClock()
    sliced = SlicedExecutor(clock, clock)
    first, second = Steps(clock, 1_000), Steps(clock, 1_000)
    found: list[str | Exception] = []
    for steps in (first, second):
        sliced.run_in_slices(steps.work(), found.append)
    seen: list[tuple[int, int]] = []

    def look() -> None:
        seen.append((first.taken, second.taken))
        if len(found) < 2:
            clock.call_later(0, look)

    look()
    clock.advance(1)
    assert found == ["done", "done"]
    assert len(seen) > 50
    assert all(abs(a - b) <= 20 for a, b in seen)


def test_all_works_together_have_one_slice_in_a_turn_and_take_turns() -> None:
    clock = FakeClock()
    sliced = SlicedExecutor(clock, clock)
    works = [Steps(clock, 5, ms=1) for _ in range(60)]
    found: list[str | Exception] = []
    for steps in works:
        sliced.run_in_slices(steps.work(), found.append)
    assert clock.monotonic_ms() == SLICE_MS  # all were begun in one turn of the loop
    while clock.scheduled():
        assert clock.scheduled() == 1
        before = [steps.taken for steps in works]
        clock.advance(0)
        taken = [steps.taken for steps in works]
        assert sum(taken) - sum(before) <= SLICE_MS
        # The first one was alone in its first turn, and comes first in the next.
        assert max(taken) - min(taken) <= 2 * SLICE_MS
    assert found == ["done"] * len(works)


def test_a_work_whose_end_is_not_heard_holds_up_no_other() -> None:
    clock = FakeClock()
    sliced = SlicedExecutor(clock, clock)
    found: list[str | Exception] = []

    def refuse(outcome: str | Exception) -> None:
        raise ValueError("planned")

    sliced.run_in_slices(Steps(clock, 3, ms=1).work(), refuse)
    sliced.run_in_slices(Steps(clock, 1).work(), found.append)
    with pytest.raises(ValueError, match="planned"):
        clock.advance(0)
    clock.advance(0)
    assert found == ["done"]


def test_work_that_is_begun_when_another_ends_shares_its_slice() -> None:
    clock = FakeClock()
    sliced = SlicedExecutor(clock, clock)
    second = Steps(clock, 2)
    found: list[str | Exception] = []
    sliced.run_in_slices(
        Steps(clock, 1).work(), lambda _: sliced.run_in_slices(second.work(), found.append)
    )
    assert (second.taken, found) == (2, ["done"])
    assert clock.scheduled() == 0


def test_what_the_work_raises_is_handed_on() -> None:
    clock = FakeClock()
    error = ValueError("planned")

    def work() -> Sliced[str]:
        yield
        raise error

    found: list[str | Exception] = []
    SlicedExecutor(clock, clock).run_in_slices(work(), found.append)
    assert found == [error]
    with pytest.raises(ValueError, match="planned"):
        run_to_completion(work())


def test_work_that_is_stopped_is_closed_and_never_goes_on() -> None:
    clock = FakeClock()
    sliced = SlicedExecutor(clock, clock)
    steps = Steps(clock, 1_000)
    found: list[str | Exception] = []
    sliced.run_in_slices(steps.work(), found.append)
    taken = steps.taken
    sliced.stop_all_work()
    clock.advance(10)
    assert steps.is_closed
    assert (steps.taken, found, clock.scheduled()) == (taken, [], 0)
