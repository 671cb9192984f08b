"""Test that a shifted clock moves the wall clock alone, and follows its file."""

from __future__ import annotations

from pathlib import Path

from coordinator.clock import FileShiftedClock, ShiftedClock

DAY_MS = 86_400_000


class StandingClock:
    def now_ms(self) -> int:
        return 1_000

    def monotonic_ms(self) -> int:
        return 7

    def monotonic_ns(self) -> int:
        return 7_000_001


def test_a_shift_moves_the_wall_clock_and_not_the_monotonic_one() -> None:
    clock = ShiftedClock(StandingClock())
    clock.shift_ms = DAY_MS
    assert clock.now_ms() == 1_000 + DAY_MS
    assert clock.monotonic_ms() == 7
    assert clock.monotonic_ns() == 7_000_001


def test_a_clock_without_a_file_is_not_shifted(tmp_path: Path) -> None:
    assert FileShiftedClock(tmp_path / "none", StandingClock()).now_ms() == 1_000


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "shift"
    clock = FileShiftedClock(file, StandingClock())
    for shift_ms in (DAY_MS, -500):
        new = tmp_path / "new"
        new.write_text(f"{shift_ms}\n")
        new.replace(file)
        assert clock.now_ms() == 1_000 + shift_ms
    file.unlink()
    assert clock.now_ms() == 1_000


def test_a_text_that_is_being_written_leaves_the_shift_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "shift"
    file.write_text("50")
    clock = FileShiftedClock(file, StandingClock())
    assert clock.now_ms() == 1_050
    new = tmp_path / "new"
    new.write_text("")
    new.replace(file)
    assert clock.now_ms() == 1_050
