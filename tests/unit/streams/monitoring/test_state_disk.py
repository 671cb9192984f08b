"""Test that the room on a disk is told, and that a directory that is gone is no error."""

from __future__ import annotations

import shutil
from pathlib import Path

from streams.monitoring.state_disk import read_disk_space


def test_the_room_of_a_directorys_disk_is_read(tmp_path: Path) -> None:
    found = read_disk_space(tmp_path)
    assert found is not None
    assert found.total_bytes == shutil.disk_usage(tmp_path).total
    assert 0 < found.free_bytes <= found.total_bytes


def test_a_directory_that_is_gone_has_no_room_to_tell(tmp_path: Path) -> None:
    assert read_disk_space(tmp_path / "gone") is None
