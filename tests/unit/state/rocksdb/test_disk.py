"""Test a database: bounded batches, a checkpoint never ahead of its data, bulk load, close."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from state.errors import DirectoryLocked, StateError
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from tests.unit.state.rocksdb.databases import StalledDatabase, WeighingDatabase
from tests.unit.state.rocksdb.killed import run_until_killed


def records(first: int, last: int) -> dict[bytes, bytes | None]:
    return {b"%09d" % n: b"v" * 100 for n in range(first, last)}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RocksDisk]:
    disk = RocksDisk(tmp_path / "db")
    yield disk
    disk.close()


class Killed(BaseException):
    """Stands in for the end of the process."""


def test_what_was_written_is_read_with_its_checkpoint(disk: RocksDisk) -> None:
    assert disk.read_checkpoint() is None
    disk.write_changes({b"a": b"1", b"b": b"2", b"c": None}, StoreCheckpoint(7, "topic", 1_000))
    disk.write_changes({b"b": None}, StoreCheckpoint(9, "topic", 2_000, stream_time_ms=70))
    assert (disk.get(b"a"), disk.get(b"b"), disk.get(b"c")) == (b"1", None, None)
    assert disk.read_checkpoint() == StoreCheckpoint(9, "topic", 2_000, 70)


def test_the_checkpoint_alone_moves_where_nothing_changed(disk: RocksDisk) -> None:
    disk.write_changes({}, StoreCheckpoint(3, "topic"))
    disk.load_changes((), StoreCheckpoint(4, "topic"))
    assert disk.read_checkpoint() == StoreCheckpoint(4, "topic")


def test_a_range_of_keys_is_deleted_without_its_end(disk: RocksDisk) -> None:
    disk.write_changes(records(0, 10), StoreCheckpoint(10, "topic"))
    disk.delete_range(b"%09d" % 2, b"%09d" % 8)
    assert [key for key, _ in disk.range(None, None)] == [b"%09d" % n for n in (0, 1, 8, 9)]


def test_a_crash_between_two_batches_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    def killed() -> None:
        raise Killed

    disk = RocksDisk(tmp_path / "db", on_batch_written=killed)
    disk.write_changes(records(0, 1), StoreCheckpoint(1, "topic"))
    with pytest.raises(Killed):
        disk.write_changes(records(0, 12_000), StoreCheckpoint(12_000, "topic"))
    assert disk.read_checkpoint() == StoreCheckpoint(1, "topic")
    assert 1 < sum(1 for _ in disk.range(None, None)) < 12_000
    disk.close()


def test_kill_9_in_the_middle_of_a_write_leaves_a_prefix_and_the_old_checkpoint(
    tmp_path: Path,
) -> None:
    run_until_killed(
        tmp_path / "db",
        """
        parts = []
        def part():
            parts.append(1)
            if len(parts) == 3:
                die()
        disk = RocksDisk(path, on_batch_written=part)
        disk.write_changes(records(0, 1), StoreCheckpoint(1, "topic"))
        disk.write_changes(records(1, 12_000), StoreCheckpoint(12_000, "topic"))
        """,
    )
    disk = RocksDisk(tmp_path / "db")
    kept = [int(key) for key, _ in disk.range(None, None)]
    assert disk.read_checkpoint() == StoreCheckpoint(1, "topic")
    assert kept == list(range(len(kept)))
    assert 1_000 < len(kept) < 12_000
    disk.close()


def test_kill_9_after_a_write_loses_nothing(tmp_path: Path) -> None:
    run_until_killed(
        tmp_path / "db",
        """
        disk = RocksDisk(path)
        disk.write_changes(records(0, 12_000), StoreCheckpoint(12_000, "topic", 5))
        die()
        """,
    )
    disk = RocksDisk(tmp_path / "db")
    assert sum(1 for _ in disk.range(None, None)) == 12_000
    assert disk.read_checkpoint() == StoreCheckpoint(12_000, "topic", 5)
    disk.close()


def test_the_log_that_is_replayed_after_kill_9_does_not_grow_with_the_store(
    tmp_path: Path,
) -> None:
    disk = RocksDisk(tmp_path / "db")
    value = b"v" * 10_000
    for first in range(0, 10_000, 1_000):
        changes = {b"%09d" % n: value for n in range(first, first + 1_000)}
        disk.write_changes(changes, StoreCheckpoint(first + 1_000, "topic"))
    sizes = []
    for file in (tmp_path / "db").glob("*.log"):
        with suppress(FileNotFoundError):  # RocksDB has just removed it, as it is not needed
            sizes.append(file.stat().st_size)
    assert 0 < sum(sizes) < 48 << 20
    disk.close()


# The first 40 000 records go through the write-ahead log. Of the rest, those that fill a buffer are
# flushed and the last are not: a checkpoint must not be ahead of these.
LOAD = """
disk = RocksDisk(path{arguments})
for first in range(0, {count}, 10_000):
    end = first + 10_000
    disk.load_changes(records(first, end).items(), StoreCheckpoint(end, "topic"))
"""


@pytest.mark.parametrize("count", [20_000, 100_000, 300_000])
def test_kill_9_in_the_middle_of_a_bulk_load_never_leaves_a_checkpoint_ahead_of_its_data(
    tmp_path: Path, count: int
) -> None:
    run_until_killed(tmp_path / "db", LOAD.format(count=count, arguments="") + "die()")
    disk = RocksDisk(tmp_path / "db")
    checkpoint = disk.read_checkpoint()
    assert checkpoint is not None
    missing = [n for n in range(checkpoint.position) if disk.get(b"%09d" % n) is None]
    assert missing == []
    disk.load_changes(records(checkpoint.position, count).items(), StoreCheckpoint(count, "topic"))
    disk.close()
    reopened = RocksDisk(tmp_path / "db")
    assert sum(1 for _ in reopened.range(None, None)) == count
    assert reopened.read_checkpoint() == StoreCheckpoint(count, "topic")
    reopened.close()


@pytest.mark.parametrize("end", ["disk.finish_load()", "disk.close()", "disk.write_changes({}, c)"])
def test_a_bulk_load_is_durable_once_it_has_ended(tmp_path: Path, end: str) -> None:
    body = (
        LOAD.format(count=100_000, arguments="") + f'c = StoreCheckpoint(100_000, "topic")\n{end}\n'
    )
    run_until_killed(tmp_path / "db", body + "die()")
    disk = RocksDisk(tmp_path / "db")
    assert disk.read_checkpoint() == StoreCheckpoint(100_000, "topic")
    assert sum(1 for _ in disk.range(None, None)) == 100_000
    disk.close()


def test_a_long_bulk_load_is_not_done_again_from_its_start(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "db")
    disk.bulk_durable_bytes = 2 << 20
    for first in range(0, 100_000, 10_000):
        disk.load_changes(
            records(first, first + 10_000).items(), StoreCheckpoint(first + 10_000, "topic")
        )
    checkpoint = disk.read_checkpoint()
    assert checkpoint is not None
    assert checkpoint.position >= 60_000
    disk.close()


@pytest.mark.parametrize(("count", "value_bytes"), [(50_000, 1), (5_000, 100), (50, 100_000)])
def test_a_write_takes_the_interpreter_for_a_bounded_batch_at_a_time(
    tmp_path: Path, count: int, value_bytes: int
) -> None:
    weighing = WeighingDatabase()
    disk = RocksDisk(tmp_path / "db", open_database=weighing.open)
    value = b"v" * value_bytes
    disk.write_changes({b"%09d" % n: value for n in range(count)}, StoreCheckpoint(1, "topic"))
    step = 64 * (value_bytes + 20)
    assert max(weighing.sizes) < 128 * 1024 + step + 100
    assert sum(weighing.sizes) > count * (value_bytes + 9)
    disk.close()


def test_a_stalled_database_is_waited_for_outside_of_it(tmp_path: Path) -> None:
    waited: list[float] = []
    disk = RocksDisk(tmp_path / "db", wait=waited.append, open_database=StalledDatabase(3).open)
    disk.write_changes(records(0, 500), StoreCheckpoint(500, "topic"))
    # 500 entries of 109 bytes and some, twice the time that they take at 1 000 000 bytes a second.
    assert waited == [pytest.approx(0.12, abs=0.02)] * 3
    assert sum(1 for _ in disk.range(None, None)) == 500
    assert disk.read_checkpoint() == StoreCheckpoint(500, "topic")
    disk.close()


def test_a_database_that_stays_stalled_is_reported_and_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waited: list[float] = []
    stalled = StalledDatabase(1_000_000)
    disk = RocksDisk(
        tmp_path / "db", store_name="counts", wait=waited.append, open_database=stalled.open
    )
    with pytest.raises(StateError, match=r"store 'counts' in .* taken no write for 120 s.*full\?"):
        disk.write_changes(records(0, 500), StoreCheckpoint(500, "topic"))
    assert sum(waited) == pytest.approx(120, abs=2)
    assert 20 <= len(caplog.records) <= 24
    disk.close()


def test_writes_that_outrun_the_flushes_all_arrive(tmp_path: Path) -> None:
    def tiny(options: Any) -> None:
        options.set_write_buffer_size(64 << 10)
        options.set_max_write_buffer_number(2)

    waits = threading.Event()
    disk = RocksDisk(tmp_path / "db", wait=waits.wait, tune=tiny)
    for first in range(0, 40_000, 10_000):
        disk.write_changes(records(first, first + 10_000), StoreCheckpoint(first + 10_000, "topic"))
    assert sum(1 for _ in disk.range(None, None)) == 40_000
    assert disk.read_checkpoint() == StoreCheckpoint(40_000, "topic")
    disk.close()


def test_a_database_that_is_open_elsewhere_is_locked(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "db")
    with pytest.raises(DirectoryLocked, match="is open elsewhere"):
        RocksDisk(tmp_path / "db")
    disk.close()
    RocksDisk(tmp_path / "db").close()


def test_a_closed_disk_says_so_and_closes_again(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "db", store_name="counts")
    disk.close()
    disk.close()
    calls = [
        lambda: disk.get(b"a"),
        lambda: list(disk.range(None, None)),
        disk.read_checkpoint,
        lambda: disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic")),
        lambda: disk.load_changes([(b"a", b"1")], StoreCheckpoint(1, "topic")),
        lambda: disk.delete_range(b"a", b"b"),
        disk.approximate_count,
    ]
    for call in calls:
        with pytest.raises(StateError, match=r"store 'counts' in .* is closed"):
            call()


def test_a_disk_that_is_closed_between_two_batches_says_so(tmp_path: Path) -> None:
    closed = RocksDisk(tmp_path / "db", on_batch_written=lambda: closed.close())
    with pytest.raises(StateError, match="is closed"):
        closed.write_changes(records(0, 12_000), StoreCheckpoint(12_000, "topic"))


def test_the_count_of_entries_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "db")
    disk.write_changes(records(0, 500), StoreCheckpoint(500, "topic"))
    disk.close()
    disk = RocksDisk(tmp_path / "db")
    assert disk.approximate_count() == 500
    disk.write_changes(records(500, 510), StoreCheckpoint(510, "topic"))
    assert disk.approximate_count() == 510, "with what is in memory"
    disk.close()


def test_clear_forgets_everything(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "db")
    disk.write_changes(records(0, 100), StoreCheckpoint(100, "topic"))
    assert disk.approximate_count() == 100
    half_used = disk.range(None, None)
    next(half_used)
    disk.clear_all_data()
    assert disk.read_checkpoint() is None
    assert list(disk.range(None, None)) == []
    disk.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic"))
    assert disk.get(b"a") == b"1"
    with pytest.raises(StateError, match="is closed"):
        next(half_used)
    disk.close()
