"""Test that new databases are made of files that are there already, and work like others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rocksdict import Rdict

from state.errors import StoreCorrupted
from state.rocksdb import RocksDisk
from state.rocksdb.empty_database import place_empty_database
from state.store_checkpoint import StoreCheckpoint

ROOT = Path(__file__).parents[4]
CHECKPOINT = StoreCheckpoint(7, "topic", 5)


def write_and_reopen(path: Path) -> None:
    disk = RocksDisk(path)
    assert (disk.read_checkpoint(), list(disk.range(None, None))) == (None, [])
    disk.write_changes({b"k": b"v"}, CHECKPOINT)
    disk.close()
    again = RocksDisk(path)
    assert (again.read_checkpoint(), again.get(b"k")) == (CHECKPOINT, b"v")
    again.close()


def test_a_new_disk_opens_files_of_a_database_that_is_there(tmp_path: Path) -> None:
    before: list[bool] = []

    def open_database(path: str, *given: Any, **options: Any) -> Any:
        before.append((Path(path) / "CURRENT").exists())
        return Rdict(path, *given, **options)

    RocksDisk(tmp_path / "db", open_database=open_database).close()
    assert before == [True]
    write_and_reopen(tmp_path / "db")


def test_two_disks_that_began_with_the_same_files_keep_their_own_data(tmp_path: Path) -> None:
    disks = [RocksDisk(tmp_path / name) for name in "ab"]
    for number, disk in enumerate(disks):
        disk.write_changes({b"k": b"%d" % number}, CHECKPOINT)
        disk.load_changes([(b"l", b"%d" % number)], CHECKPOINT)
        disk.finish_load()
    for disk in disks:
        disk.close()
    again = [RocksDisk(tmp_path / name) for name in "ab"]
    assert [(disk.get(b"k"), disk.get(b"l")) for disk in again] == [(b"0", b"0"), (b"1", b"1")]
    for disk in again:
        disk.close()


@pytest.mark.parametrize(
    ("count", "is_empty", "is_damaged"),
    [
        (0, False, False),
        (1, False, False),
        (1, True, False),
        (2, False, False),
        (2, True, False),
        (3, False, False),
        (3, True, True),
    ],
)
def test_what_a_power_failure_leaves_of_the_files_is_made_a_database(
    tmp_path: Path, count: int, is_empty: bool, is_damaged: bool
) -> None:
    """Write the first files only, the last of them empty: the others never reached the disk."""
    whole, partial = tmp_path / "whole", tmp_path / "partial"
    whole.mkdir()
    partial.mkdir()
    place_empty_database(whole)
    names = sorted((each.name for each in whole.iterdir()), key=lambda name: name == "CURRENT")
    assert names[-1] == "CURRENT"
    for name in names[:count]:
        (partial / name).write_bytes((whole / name).read_bytes())
    if is_empty and count:
        os.truncate(partial / names[count - 1], 0)
    disk = RocksDisk(partial)
    if is_damaged:  # as any damaged database is: the runtime clears it
        with pytest.raises(StoreCorrupted):
            disk.read_checkpoint()
        disk.clear_all_data()
    disk.close()
    write_and_reopen(partial)


def test_nothing_is_put_where_there_is_anything(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    place_empty_database(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["note"]


def test_a_database_is_made_in_its_place_where_none_can_be_made_elsewhere(tmp_path: Path) -> None:
    """In a container /dev/shm may be full, and no other temporary directory can be written."""
    program = f"""
import tempfile
from pathlib import Path

def refuse(*given, **options):
    raise OSError(28, "No space left on device")

tempfile.TemporaryDirectory = refuse
from tests.unit.state.rocksdb.test_empty_database import write_and_reopen

write_and_reopen(Path({str(tmp_path / "db")!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
