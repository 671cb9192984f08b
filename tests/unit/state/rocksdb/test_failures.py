"""Test that damage is cleared and rebuilt, and that trouble of the machine is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from state.errors import StateError, StoreCorrupted
from state.rocksdb import RocksDisk
from state.rocksdb.failures import is_write_stall, to_state_error
from state.store_checkpoint import StoreCheckpoint
from tests.processes import HANG_LIMIT_S
from tests.unit.state.rocksdb.databases import DamagedDatabase
from tests.unit.state.rocksdb.killed import run_until_killed


def make(path: Path) -> None:
    """Create a closed database with one data file."""
    disk = RocksDisk(path)
    disk.write_changes(
        {b"%06d" % n: b"v" * 100 for n in range(10_000)}, StoreCheckpoint(10_000, "topic")
    )
    disk.close()


def truncate(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"\xa5" * file.stat().st_size)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def remove(file: Path) -> None:
    file.unlink()


def largest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: file.stat().st_size)


def read_all(disk: RocksDisk) -> None:
    disk.read_checkpoint()
    disk.get(b"005000")
    list(disk.range(None, None))


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        (pattern, damage)
        for pattern in ("*.sst", "MANIFEST-*", "CURRENT")
        for damage in (truncate, overwrite, empty, remove)
        if (pattern, damage) != ("MANIFEST-*", truncate)
    ],
)
def test_a_damaged_database_is_seen_and_cleared(
    tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "db"
    make(path)
    damage(largest(path, pattern))
    disk = RocksDisk(path, store_name="counts")
    with pytest.raises(StoreCorrupted) as raised:
        read_all(disk)
    assert raised.value.store == "counts"
    assert str(path) in str(raised.value)
    assert raised.value.reason
    disk.clear_all_data()
    assert disk.read_checkpoint() is None
    assert list(disk.range(None, None)) == []
    disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic"))
    disk.close()
    reopened = RocksDisk(path)
    assert (reopened.get(b"a"), reopened.read_checkpoint()) == (b"1", StoreCheckpoint(1, "topic"))
    reopened.close()


def test_a_cut_manifest_is_an_older_database_whose_checkpoint_is_as_old(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path)
    truncate(largest(path, "MANIFEST-*"))
    disk = RocksDisk(path)
    assert disk.read_checkpoint() is None
    assert list(disk.range(None, None)) == []
    disk.close()


def test_a_flipped_byte_in_a_block_is_seen_by_whoever_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path)
    file = largest(path, "*.sst")
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 4)
        byte = opened.read(1)
        opened.seek(-1, 1)
        opened.write(bytes([byte[0] ^ 1]))
    reads: list[Callable[[RocksDisk], object]] = [
        lambda disk: list(disk.range(None, None)),
        lambda disk: list(disk.range(None, None, reverse=True)),
        lambda disk: [disk.get(b"%06d" % n) for n in range(10_000)],
    ]
    for read in reads:
        disk = RocksDisk(path)
        assert disk.get(b"000000") is not None
        disk.raise_if_corrupted()
        with pytest.raises(StoreCorrupted, match="checksum"):
            read(disk)
        # From now on the disk counts as damaged, for reads of undamaged blocks too.
        for call in (
            disk.raise_if_corrupted,
            lambda disk=disk: disk.get(b"000000"),
            disk.read_checkpoint,
        ):
            with pytest.raises(StoreCorrupted, match="checksum"):
                call()
        disk.close()


def test_damage_found_in_the_middle_of_a_restore_ends_with_clear(tmp_path: Path) -> None:
    path = tmp_path / "db"
    database = DamagedDatabase()
    disk = RocksDisk(path, open_database=database.open)
    for first in range(0, 60_000, 10_000):  # This much bypasses the write-ahead log.
        changes = [(b"%06d" % n, b"v" * 100) for n in range(first, first + 10_000)]
        disk.load_changes(changes, StoreCheckpoint(first, "topic"))
    database.is_damaged = True
    with pytest.raises(StoreCorrupted, match="checksum"):
        disk.get(b"000000")
    with pytest.raises(StoreCorrupted, match="checksum"):
        disk.finish_load()
    disk.clear_all_data()
    disk.raise_if_corrupted()
    assert disk.read_checkpoint() is None
    disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic"))
    assert disk.get(b"a") == b"1"
    disk.close()


def test_every_call_on_a_damaged_database_says_so_but_clear_and_close(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path)
    empty(path / "CURRENT")
    disk = RocksDisk(path)
    calls: list[Callable[[], object]] = [
        lambda: disk.get(b"a"),
        lambda: list(disk.range(None, None)),
        disk.read_checkpoint,
        lambda: disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic")),
        lambda: disk.load_changes([(b"a", b"1")], StoreCheckpoint(1, "topic")),
        lambda: disk.delete_range(b"a", b"b"),
        disk.approximate_count,
        disk.raise_if_corrupted,
        disk.finish_load,
    ]
    for call in calls:
        with pytest.raises(StoreCorrupted):
            call()
    disk.close()


def test_a_log_that_was_cut_by_a_power_loss_is_a_suffix_lost_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "db"
    run_until_killed(
        path,
        """
        disk = RocksDisk(path)
        for first in range(0, 10_000, 1_000):
            end = first + 1_000
            disk.write_changes(records(first, end), StoreCheckpoint(end, "topic"))
        die()
        """,
    )
    truncate(largest(path, "*.log"))
    disk = RocksDisk(path)
    checkpoint = disk.read_checkpoint()
    assert checkpoint is not None
    assert 0 < checkpoint.position < 10_000
    assert all(disk.get(b"%09d" % n) is not None for n in range(checkpoint.position))
    disk.close()


def test_kill_9_while_a_database_is_first_made_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.mkdir()
    (path / "MANIFEST-000001").write_bytes(b"half")
    (path / "LOCK").touch()
    disk = RocksDisk(path)
    assert disk.read_checkpoint() is None
    disk.close()


def test_what_kill_9_leaves_of_a_database_that_was_being_cleared_is_never_taken_for_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "db"
    run_until_killed(
        path,
        """
        import shutil
        from state.rocksdb import disk as module
        disk = RocksDisk(path)
        disk.write_changes(records(0, 10_000), StoreCheckpoint(10_000, "topic"))
        disk.close()
        disk = RocksDisk(path)
        shutil.rmtree = lambda path: die()
        disk.clear_all_data()
        """,
    )
    disk = RocksDisk(path)
    with pytest.raises(StoreCorrupted, match="no CURRENT"):
        disk.read_checkpoint()
    disk.clear_all_data()
    assert disk.read_checkpoint() is None
    disk.close()


def test_a_full_disk_is_no_damage_and_nothing_is_wiped(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path)
    code = """
import resource, sys
from pathlib import Path
from state.errors import StoreCorrupted, StateError
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
disk = RocksDisk(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
import os
for write in (disk.write_changes, lambda c, at: disk.load_changes(c.items(), at)):
    try:
        for first in range(10_000, 100_000, 1_000):
            changes = {b"%06d" % n: os.urandom(100) for n in range(first, first + 1_000)}
            write(changes, StoreCheckpoint(first + 1_000, "topic"))
    except StoreCorrupted:
        sys.exit("corrupt")
    except StateError as error:
        print(error)
try:
    disk.close()
except StateError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    assert "can't be written" in ended.stdout
    assert "File too large" in ended.stdout
    disk = RocksDisk(path)
    checkpoint = disk.read_checkpoint()
    assert checkpoint is not None
    assert checkpoint.position >= 10_000
    assert [n for n in range(checkpoint.position) if disk.get(b"%06d" % n) is None] == []
    disk.close()


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path / "file" / "db", "Not a directory"),
        (tmp_path / "file", "File exists"),
    ):
        with pytest.raises(StateError, match=f"{reason}.*a file where a directory should be"):
            RocksDisk(path)


def test_a_full_disk_comes_with_advice() -> None:
    text = "IO error: No space left on device: While appending to file: 000012.log"
    error = to_state_error("counts", Path("db"), "be written", Exception(text))
    assert str(error).startswith("store 'counts' in db can't be written: ")
    assert str(error).endswith("make room and start again, what was committed is kept")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Corruption: block checksum mismatch", StoreCorrupted),
        ("IO error: No such file or directory: While open a file: 000012.sst", StoreCorrupted),
        ("IO error: No space left on device: While appending to file", StateError),
        ("IO error: Input/output error: while reading", StateError),
        ("IO error: Too many open files", StateError),
        ("Invalid argument: Column families not opened: later", StateError),
    ],
)
def test_the_text_of_an_error_tells_what_it_means(text: str, kind: type[StateError]) -> None:
    error = to_state_error("counts", Path("db"), "be read", Exception(text))
    assert type(error) is kind
    assert text in str(error)
    assert not is_write_stall(Exception(text))
