"""Test that the cleanup removes tasks that nobody has run for long, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from state.cleanup import delete_unused_tasks
from state.directory import StateDirectory
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from tests.unit.state.holding import hold_in_process

NOW_MS = 2_000_000_000_000
DELAY_MS = 600_000
LONG_AGO_MS = NOW_MS - DELAY_MS - 1


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path, "app")


def used(directory: StateDirectory, task: str, at_ms: int, file: str = "store/000004.log") -> Path:
    """Create a task's directory whose files were last written at `at_ms`."""
    path = directory.path / task
    for name in {".lock", "store/CURRENT", file}:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    for each in (*path.rglob("*"), path):
        os.utime(each, ns=(0, LONG_AGO_MS * 1_000_000))
    os.utime(path / file, ns=(0, at_ms * 1_000_000))
    return path


def run(directory: StateDirectory, *keep: str) -> list[str]:
    return delete_unused_tasks(directory, now_ms=NOW_MS, delay_ms=DELAY_MS, kept_tasks=keep)


def test_a_task_that_nobody_has_run_for_long_goes(directory: StateDirectory) -> None:
    old = used(directory, "0_0", LONG_AGO_MS)
    assert run(directory) == ["0_0"]
    assert not old.exists()
    assert sorted(os.listdir(directory.path)) == ["millrace.json"]


@pytest.mark.parametrize("file", [".lock", "store/000004.log"])
def test_a_task_that_was_used_within_the_delay_stays(directory: StateDirectory, file: str) -> None:
    used(directory, "0_0", NOW_MS - DELAY_MS + 1, file)
    assert run(directory) == []


def test_a_task_of_ours_stays(directory: StateDirectory) -> None:
    used(directory, "0_0", LONG_AGO_MS)
    used(directory, "0_1", LONG_AGO_MS)
    assert run(directory, "0_0") == ["0_1"]


def test_a_task_that_another_process_runs_stays(tmp_path: Path, directory: StateDirectory) -> None:
    used(directory, "0_0", LONG_AGO_MS)
    with hold_in_process(tmp_path, "lock = directory.lock_task('0_0')"):
        for file in (directory.path / "0_0").rglob("*"):
            os.utime(file, ns=(0, LONG_AGO_MS * 1_000_000))
        assert run(directory) == []
        assert (directory.path / "0_0" / "store" / "CURRENT").exists()


def test_what_is_not_a_task_of_this_application_stays(
    tmp_path: Path, directory: StateDirectory
) -> None:
    other = StateDirectory(tmp_path, "other")
    kept = [used(other, "0_0", LONG_AGO_MS)]
    for name in ("process-0", "notes", "0_0.bak", "x0_0", "0_0_0"):
        kept.append(used(directory, name, LONG_AGO_MS))
    assert run(directory) == []
    assert [path for path in kept if not path.exists()] == []


def test_what_a_process_that_died_had_moved_aside_goes(directory: StateDirectory) -> None:
    used(directory, ".removed-0_0-17", NOW_MS)
    assert run(directory) == []
    assert sorted(os.listdir(directory.path)) == ["millrace.json"]


def test_a_task_that_ran_between_the_look_and_the_lock_stays(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = used(directory, "0_0", LONG_AGO_MS)
    really_lock = directory.lock_task

    def lock_task(task: str) -> object:
        os.utime(path / "store" / "CURRENT", ns=(0, NOW_MS * 1_000_000))
        return really_lock(task)

    monkeypatch.setattr(directory, "lock_task", lock_task)
    assert run(directory) == []
    assert (path / "store" / "CURRENT").exists()


def test_a_task_that_comes_back_after_its_state_was_removed_begins_anew(
    directory: StateDirectory,
) -> None:
    lock = directory.lock_task("0_0")
    disk = RocksDisk(directory.build_store_path("0_0", "store"))
    disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic"))
    disk.close()
    lock.release()
    now_ms = int((directory.path / "0_0" / ".lock").stat().st_mtime * 1_000) + DELAY_MS
    assert (
        delete_unused_tasks(directory, now_ms=now_ms - 10_000, delay_ms=DELAY_MS, kept_tasks=())
        == []
    )
    assert delete_unused_tasks(
        directory, now_ms=now_ms + 10_000, delay_ms=DELAY_MS, kept_tasks=()
    ) == ["0_0"]
    lock = directory.lock_task("0_0")
    disk = RocksDisk(directory.build_store_path("0_0", "store"))
    assert disk.read_checkpoint() is None
    disk.close()
    lock.release()


def test_what_cannot_be_removed_is_logged_and_left(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    used(directory, "0_0", LONG_AGO_MS)
    used(directory, "0_1", LONG_AGO_MS)
    really_rename = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if path.name == "0_0":
            raise PermissionError("not yours")
        return really_rename(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert run(directory) == ["0_1"]
    assert "0_0 can't be cleaned up: not yours" in caplog.text
