"""Test that what kill -9 leaves of a driver's directory is copied as of one moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from streams import TopologyTestDriver
from streams.testing.state_directory import TemporaryStateDirectory
from tests.unit.streams.testing.apps import build_counting_app


def test_many_crashes_lose_nothing() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        for _ in range(20):  # RocksDB compacts every fourth time or so
            driver.topic("in").pipe("k", "x")
            driver.crash()
            driver.restart()
        assert driver.store("c").get("k") == 20


def test_files_that_change_while_they_are_copied_are_copied_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = TemporaryStateDirectory()
    path = scratch.build_store_path("0_0", "c")
    path.mkdir(parents=True)
    (path / "1").write_text("a")
    copies: list[Path] = []
    copytree = shutil.copytree

    def and_compact(source: Any, target: Any, *how: Any, **more: Any) -> None:
        copytree(source, target, *how, **more)
        if Path(target).name != "life-1":
            return  # a directory in it: shutil calls itself
        copies.append(target)
        if len(copies) == 1:
            (path / "1").unlink()
            (path / "2").write_text("b")

    monkeypatch.setattr(shutil, "copytree", and_compact)
    scratch.switch_to_copy()
    after = scratch.build_store_path("0_0", "c")
    assert after != path
    assert [each.name for each in after.iterdir()] == ["2"]
    assert len(copies) == 2
    scratch.remove_directory()
    assert not path.exists()
    assert not after.exists()


def make_old(directory: Path) -> None:
    os.utime(directory, (0, 0))


def test_it_is_in_memory_where_the_machine_has_a_file_system_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    scratch = TemporaryStateDirectory(memory=tmp_path)
    assert scratch.build_store_path("0_0", "c").is_relative_to(tmp_path)
    scratch.remove_directory()
    assert list(tmp_path.iterdir()) == []


def test_it_is_where_tmpdir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    scratch = TemporaryStateDirectory(memory=tmp_path)
    assert scratch.build_store_path("0_0", "c").is_relative_to(tmp_path / "temporary")
    scratch.remove_directory()


def test_it_is_a_temporary_directory_where_there_is_no_such_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    scratch = TemporaryStateDirectory(memory=tmp_path / "missing")
    path = scratch.build_store_path("0_0", "c")
    assert not path.is_relative_to(tmp_path / "missing")
    scratch.remove_directory()
    assert not path.parents[2].exists()


def test_memory_that_killed_processes_have_left_is_freed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    abandoned, new, anothers = (
        tmp_path / name for name in ("millrace-driver-1", "millrace-driver-2", "other-3")
    )
    for each in (abandoned, new, anothers):
        (each / "life-0").mkdir(parents=True)
    running = TemporaryStateDirectory(memory=tmp_path)
    in_use = running.build_store_path("0_0", "c").parents[2]
    for each in (abandoned, anothers, in_use):
        make_old(each)
    scratch = TemporaryStateDirectory(memory=tmp_path)
    scratch.build_store_path("0_0", "c")
    assert not abandoned.exists()
    assert new.exists()
    assert anothers.exists()
    assert in_use.exists()
    running.remove_directory()
    scratch.remove_directory()
