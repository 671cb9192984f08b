"""Test that a worker names a state directory that is gone, and a broker's disk that is full."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from state.directory import StateDirectory
from streams.processes.disk_watch import DiskWatch
from streams.symptoms.lookup import find_by_message


class Clock:
    now_s = 1_000.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path, "app")


def create_watch(directory: StateDirectory, clock: Any, data: Path | None = None) -> DiskWatch:
    stop: Any = None
    watch = DiskWatch(directory, data, clock, stop)
    watch.remember_directory()
    return watch


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_state_directory_that_was_removed_is_told_once_a_minute(
    directory: StateDirectory,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    *,
    is_made_again: bool,
) -> None:
    watch = create_watch(directory, clock)
    watch.look_at_disks()
    assert watch.troubles == ()
    kept = directory.path.with_name("kept")  # so that its inode is not taken again
    directory.path.rename(kept)
    if is_made_again:
        StateDirectory(directory.path.parent, "app")
    for _ in range(3):
        watch.look_at_disks()
    (told,) = caplog.messages
    assert str(directory.path) in told
    found = find_by_message(told)
    assert found is not None
    assert found.code == "MR-023"
    clock.now_s += 61
    watch.look_at_disks()
    assert len(caplog.messages) == 2


def test_contents_that_were_removed_are_told(directory: StateDirectory, clock: Clock) -> None:
    watch = create_watch(directory, clock)
    for each in directory.path.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    watch.look_at_disks()
    assert len(watch.troubles) == 1


def test_a_full_disk_of_the_embedded_broker_is_told_until_there_is_room(
    directory: StateDirectory,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO")
    free_blocks = 0

    def measure(path: Path) -> Any:
        return SimpleNamespace(f_frsize=4096, f_bavail=free_blocks, f_bfree=free_blocks)

    monkeypatch.setattr(os, "statvfs", measure)
    watch = create_watch(directory, clock, directory.path)
    watch.look_at_disks()
    (told,) = watch.troubles
    found = find_by_message(told)
    assert found is not None
    assert found.code == "MR-062"
    free_blocks = 100
    watch.look_at_disks()
    assert watch.troubles == ()
    assert caplog.messages[-1].startswith("no longer so: ")
