"""Test which segments retention removes, and when, without disturbing readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code, Refused
from coordinator.log.batch import iterate_batches
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import partition, produced
from tests.unit.coordinator.log.test_any_history import Queue

DIRECTORY = Path("/data")
SIZE = produced([b"v"]).size
HOUR_MS = 3_600_000


def opened(disk: MemoryDisk, clock: FakeClock | None = None, **settings: Any) -> PartitionLog:
    """Open a log with two batches a segment."""
    return partition(
        DIRECTORY, disk=disk, clock=clock or FakeClock(), segment_bytes=2 * SIZE, **settings
    )


def filled(disk: MemoryDisk, clock: FakeClock, count: int = 7, **settings: Any) -> PartitionLog:
    """Fill a log with a batch an hour, the last one now."""
    log = opened(disk, clock, **settings)
    for i in range(count):
        if i:
            clock.advance(HOUR_MS)
        log.append_produced(produced([b"v"], timestamp_ms=clock.now_ms()))
    return log


def offsets(log: PartitionLog) -> list[int]:
    found: list[int] = []
    offset = log.start_offset
    while data := log.read(offset, 1 << 20):
        found += [batch.base_offset for batch in iterate_batches(data)]
        offset = found[-1] + 1
    return found


def log_files(disk: MemoryDisk) -> list[int]:
    return sorted(int(path.stem) for path in disk.files if path.suffix == ".log")


# Batches 0..6 are 6..0 hours old, in segments 01, 23, 45, 6.
@pytest.mark.parametrize(
    ("settings", "start_offset"),
    [
        ({"retention_ms": -1}, 0),
        ({"retention_ms": 5 * HOUR_MS}, 0),
        ({"retention_ms": 5 * HOUR_MS - 1}, 2),
        ({"retention_ms": 1 * HOUR_MS}, 4),
        ({"retention_ms": 1 * HOUR_MS - 1}, 6),
        ({"retention_bytes": 7 * SIZE}, 0),
        ({"retention_bytes": 5 * SIZE + 1}, 0),
        ({"retention_bytes": 5 * SIZE}, 2),
        ({"retention_bytes": 3 * SIZE}, 4),
        ({"retention_bytes": SIZE}, 6),
        ({"retention_bytes": 0}, 7),
        ({"retention_bytes": 0, "is_deleted": False, "is_compacted": True}, 0),
        ({"retention_ms": 0, "is_deleted": False}, 0),
    ],
)
def test_the_oldest_segments_go_as_far_as_the_configuration_says(
    settings: dict[str, Any], start_offset: int
) -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    log = filled(disk, clock, **{"retention_ms": -1, **settings})
    log.remove_expired_segments()
    assert (log.start_offset, log.end_offset) == (start_offset, 7)
    assert offsets(log) == list(range(start_offset, 7))
    for crashed in (disk.kill(), disk.lose_power()):
        again = opened(crashed, clock)
        assert again.start_offset == start_offset
        assert again.append_produced(produced()).base_offset >= 6  # the last one may not be flushed


def test_the_active_segment_goes_when_all_of_it_is_old() -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    log = filled(disk, clock, retention_ms=HOUR_MS)
    clock.advance(HOUR_MS + 1)
    for _ in range(2):
        log.remove_expired_segments()
        assert (log.start_offset, log.end_offset, log.last_stable_offset) == (7, 7, 7)
        assert log_files(disk) == [7]
    assert log.append_produced(produced()).base_offset == 7


def test_files_go_after_the_delay_and_what_is_being_sent_is_sent() -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    log = filled(disk, clock, retention_bytes=SIZE, file_delete_delay_ms=60_000)
    fetched = log.fetch_batches(0, 1 << 20, committed=False, at_least_one=True)
    log.remove_expired_segments()
    with pytest.raises(Refused) as refused:
        log.fetch_batches(0, 1 << 20, committed=False, at_least_one=True)
    assert refused.value.code == Code.OFFSET_OUT_OF_RANGE
    assert len(list(iterate_batches(bytes(fetched.records)))) == 2
    assert log_files(disk) == [6]
    clock.advance(59_999)
    assert any(path.suffix == ".deleted" for path in disk.files)
    clock.advance(1)
    assert not any(path.suffix == ".deleted" for path in disk.files)


def test_files_that_a_killed_broker_left_to_be_deleted_go_later() -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    filled(disk, clock, retention_bytes=SIZE).remove_expired_segments()
    after = disk.kill()
    assert any(path.suffix == ".deleted" for path in after.files)
    opened(after, clock)
    clock.advance(60_000)
    assert not any(path.suffix == ".deleted" for path in after.files)


def test_deleted_records_are_gone_for_good() -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    log = filled(disk, clock)
    assert log.delete_records_before(3) == 3
    assert log.delete_records_before(1) == 3
    assert log_files(disk) == [2, 4, 6]
    found = log.timestamps.find_offset(0, log.start_offset, 7)
    assert found is not None
    assert found[0] == 3
    for crashed in (disk.kill(), disk.lose_power()):
        assert opened(crashed, clock).start_offset == 3
    log = opened(disk.kill(), clock)
    assert log.delete_records_before(-1) == 7
    assert log.read(7, 100) == b""
    assert log.append_produced(produced()).base_offset == 7


@pytest.mark.parametrize(
    ("offset", "settings", "code"),
    [
        (8, {}, Code.OFFSET_OUT_OF_RANGE),
        (-2, {}, Code.OFFSET_OUT_OF_RANGE),
        (3, {"is_deleted": False, "is_compacted": True}, Code.POLICY_VIOLATION),
    ],
)
def test_records_that_can_not_be_deleted(offset: int, settings: dict[str, Any], code: Code) -> None:
    log = filled(MemoryDisk(), FakeClock(), **settings)
    with pytest.raises(Refused) as refused:
        log.delete_records_before(offset)
    assert refused.value.code == code
    assert log.start_offset == 0


def test_what_is_stable_never_ends_before_the_start_of_the_log() -> None:
    log = opened(MemoryDisk())
    log.append_produced(produced(producer_id=7, transactional=True))
    log.append_produced(produced())
    log.delete_records_before(2)
    assert log.last_stable_offset == 2
    log.append_produced(produced())
    assert log.last_stable_offset == 2
    log.append_marker(7, 0, False, 0)
    assert log.last_stable_offset == 4


def test_aborted_transactions_go_with_their_segments() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    for i in range(4):
        log.append_produced(produced([b"v"], producer_id=7, sequence=i, transactional=True))
        log.append_marker(7, 0, False, 0)
    assert len(log.find_aborted_transactions(0, 8)) == 4
    log.delete_records_before(5)
    for found in (log, opened(disk.kill())):
        assert [each.first_offset for each in found.find_aborted_transactions(0, 8)] == [4, 6]


def test_a_segment_is_followed_by_another_when_it_spans_more_than_segment_ms() -> None:
    clock = FakeClock()
    log = partition(DIRECTORY, disk=MemoryDisk(), clock=clock, segment_ms=HOUR_MS)
    for _ in range(3):
        log.append_produced(produced(timestamp_ms=clock.now_ms()))
        clock.advance(HOUR_MS)
    log.append_produced(produced(timestamp_ms=clock.now_ms()))
    assert [int(path.stem) for path, _ in log.list_segment_files()] == [0, 2]


def test_offsets_of_deleted_records_are_not_given_again_after_a_loss_of_power() -> None:
    """Check that new records get offsets above the start offset, which survives the loss."""
    disk = MemoryDisk()
    log = opened(disk, background=Queue())  # no checkpoint is written
    for _ in range(3):
        log.append_produced(produced())
    log.delete_records_before(-1)
    after = disk.lose_power()
    log = opened(after)
    assert (log.start_offset, log.end_offset) == (3, 3)
    assert log.append_produced(produced()).base_offset == 3
    again = opened(after.kill())
    assert (again.start_offset, again.end_offset) == (3, 4)
    assert offsets(again) == [3]
