"""Test that what kill -9 leaves of a driver's directory is copied as of one moment."""

from __future__ import annotations

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
    path = scratch.store_path("0_0", "c")
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
    after = scratch.store_path("0_0", "c")
    assert after != path
    assert [each.name for each in after.iterdir()] == ["2"]
    assert len(copies) == 2
    scratch.remove_directory()
    assert not path.exists()
    assert not after.exists()
