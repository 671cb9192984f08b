"""Test that the class data of Java programs is written once, and whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.class_data import ClassData


def test_the_first_draft_is_the_archive_of_all_later_processes(tmp_path: Path) -> None:
    libs, one, two = (tmp_path / name for name in ("libs", "one", "two"))
    for each in (libs, one, two):
        each.mkdir()
    first, second = (ClassData.find(libs, "Main", each) for each in (one, two))
    assert first.flags[0] == f"-XX:ArchiveClassesAtExit={first.draft}"
    first.draft.write_text("first")
    second.draft.write_text("second")
    first.keep_draft(0)
    second.keep_draft(0)
    assert first.archive.read_text() == "first"
    assert [path.name for path in libs.iterdir()] == [first.archive.name]
    assert not second.draft.exists()
    assert second.flags[0] == f"-XX:SharedArchiveFile={first.archive}"


def test_a_process_that_wrote_no_draft_leaves_no_archive(tmp_path: Path) -> None:
    data = ClassData.find(tmp_path, "Main", tmp_path / "none")
    data.keep_draft(0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("returncode", "is_kept"), [(0, True), (143, True), (-15, True), (1, False), (-9, False)]
)
def test_the_draft_of_a_process_that_did_not_end_in_order_is_dropped(
    tmp_path: Path, returncode: int, is_kept: bool
) -> None:
    (tmp_path / "own").mkdir()
    data = ClassData.find(tmp_path, "Main", tmp_path / "own")
    data.draft.write_text("perhaps a part")
    data.keep_draft(returncode)
    assert data.archive.exists() is is_kept
    assert not data.draft.exists()


def test_programs_and_directories_of_jars_have_archives_of_their_own(tmp_path: Path) -> None:
    archives = {
        ClassData.find(tmp_path / libs, program, tmp_path).archive
        for libs in ("one", "two")
        for program in ("Main", "Tool")
    }
    assert len({each.name for each in archives}) == 4
