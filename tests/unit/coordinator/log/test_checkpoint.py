"""Test that a start reads only above the recovery point, or everything without a valid one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code, Refused
from coordinator.log.batch import RecordBatch, iterate_batches
from coordinator.log.disk import File
from coordinator.log.partition import PartitionLog
from coordinator.log.producer_snapshot import encode_producer_snapshot
from coordinator.log.recovery import CorruptLog
from coordinator.log.segment import CorruptBatch
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.logs import partition, produced
from tests.unit.coordinator.log.test_recovery import summary

DIRECTORY = Path("/data")
LOG = DIRECTORY / "t-0" / f"{0:020}.log"


class CountingDisk(MemoryDisk):
    """Counts the bytes that are read of `.log` files."""

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__()
        self.__dict__.update(disk.__dict__)
        self.bytes_read = 0

    def open_file(self, path: Path) -> File:
        file = super().open_file(path)
        if path.suffix == ".log":
            read = file.read

            def counting(count: int, position: int) -> bytes:
                data = read(count, position)
                self.bytes_read += len(data)
                return data

            file.read = counting  # type: ignore[method-assign]
        return file


def write(log: PartitionLog, first: int, count: int) -> None:
    """Write a transaction a batch; every other one aborts, and the last one stays open."""
    for i in range(first, first + count):
        log.append_produced(
            produced([b"value" * 20], producer_id=7, sequence=i, transactional=True)
        )
        if i < first + count - 1:
            log.append_marker(7, 0, i % 2 == 0, 0)


def opened(disk: MemoryDisk, segment_bytes: int = 1 << 30) -> PartitionLog:
    return partition(DIRECTORY, disk=disk, index_interval_bytes=300, segment_bytes=segment_bytes)


@pytest.fixture(params=[1_000, 1 << 30], ids=["segments", "one segment"])
def segment_bytes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_nothing_of_the_log_is_read_after_a_clean_stop(segment_bytes: int) -> None:
    disk = MemoryDisk()
    log = opened(disk, segment_bytes=segment_bytes)
    write(log, 0, 20)
    before = summary(log)
    log.close()
    counting = CountingDisk(disk)
    again = opened(counting, segment_bytes=segment_bytes)
    assert counting.bytes_read == 0
    assert again.checkpoints.has_unsaved is False
    assert summary(again) == before


@pytest.mark.parametrize("crash", [MemoryDisk.kill, MemoryDisk.lose_power])
def test_only_what_came_after_the_checkpoint_is_read_after_a_crash(
    segment_bytes: int, crash: Callable[[MemoryDisk], MemoryDisk]
) -> None:
    disk = MemoryDisk()
    log = opened(disk, segment_bytes=segment_bytes)
    write(log, 0, 20)
    log.checkpoints.save_checkpoint_in_background()
    size = sum(size for _, size in log.list_segment_files())
    log.append_produced(produced([b"late"], producer_id=7, sequence=20, transactional=True))
    added = sum(size for _, size in log.list_segment_files()) - size
    before = summary(log) if crash is MemoryDisk.kill else None
    counting = CountingDisk(crash(disk))
    again = opened(counting, segment_bytes=segment_bytes)
    assert counting.bytes_read in (0, added)
    assert again.end_offset == log.end_offset - (crash is MemoryDisk.lose_power)
    assert before is None or summary(again) == before
    write(again, 20 + (crash is MemoryDisk.kill), 3)


def test_a_retry_of_any_of_the_last_five_batches_is_recognised_after_a_stop() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    sent = [produced([b"v"], producer_id=7, sequence=i) for i in range(7)]
    for batch in sent:
        log.append_produced(batch)
    log.close()
    again = opened(disk)
    for i in range(2, 7):
        assert again.append_produced(sent[i]).base_offset == i
    with pytest.raises(Refused) as refused:
        again.append_produced(sent[1])
    assert refused.value.code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER


class Stopped:
    """Stands in for a background thread that runs nothing, and counts the work it is given."""

    asked = 0

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        self.asked += 1

    def close(self) -> None:
        pass


def test_a_log_that_is_closed_asks_for_nothing_more_in_the_background() -> None:
    """Check that a closed log schedules no work, which would write to the next broker's files."""
    background = Stopped()
    disk = MemoryDisk()
    log = partition(DIRECTORY, disk=disk, background=background)
    log.append_produced(produced())
    log.checkpoints.save_checkpoint_in_background()
    log.checkpoints.save_checkpoint_in_background()  # waits for the first
    assert background.asked == 1
    log.close()
    assert background.asked == 1


class RacingDisk(MemoryDisk):
    """Stands in for a disk on which another thread flushes names while a file is being created."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def open_file(self, path: Path) -> File:
        if path.suffix == ".log" and path not in self.files:
            self.meanwhile()
        return super().open_file(path)


def test_a_new_segments_name_is_flushed_whatever_another_thread_flushes_just_then() -> None:
    disk = RacingDisk()
    size = produced().size
    log = partition(
        DIRECTORY, disk=disk, background=Stopped(), segment_bytes=size, flush_messages=1
    )
    log.append_produced(produced())
    disk.meanwhile = log._segments.flushing.flush_directories
    log.append_produced(produced())
    again = partition(DIRECTORY, disk=disk.lose_power(), segment_bytes=size)
    assert again.end_offset == 2


def test_power_lost_at_any_call_of_the_disk_leaves_a_log_that_opens() -> None:
    """Check that all data flushed before are there after the loss, and all others whole."""
    for calls in range(60):
        disk = FailingAfter(calls)
        log = opened(disk, segment_bytes=1_000)
        acknowledged = flushed = 0
        try:
            for i in range(30):
                log.append_produced(produced([b"value" * 20], producer_id=7, sequence=i))
                acknowledged = log.end_offset
                if i % 7 == 6:
                    log.checkpoints.save_checkpoint_in_background()
                    if not log.checkpoints.has_unsaved:
                        flushed = acknowledged
        except Refused:
            pass
        killed = opened(disk.kill(), segment_bytes=1_000)
        assert killed.end_offset == acknowledged, f"{calls=}"
        after = opened(disk.lose_power(), segment_bytes=1_000)
        assert flushed <= after.end_offset <= acknowledged, f"{calls=}"
        assert [b.base_offset for b in all_batches(after)] == list(range(after.end_offset))


class FailingAfter(MemoryDisk):
    """Stands in for a disk whose flushes, replaces and renames fail after so many."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def _count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise OSError(5, "planned")

    def open_file(self, path: Path) -> File:
        file = super().open_file(path)
        flush = file.flush

        def counted() -> None:
            self._count()
            flush()

        file.flush = counted  # type: ignore[method-assign]
        return file

    def replace_file(self, path: Path, content: bytes) -> None:
        self._count()
        super().replace_file(path, content)

    def flush_directory(self, path: Path) -> None:
        self._count()
        super().flush_directory(path)


def all_batches(log: PartitionLog) -> list[RecordBatch]:
    found = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 1 << 20)
        for batch in iterate_batches(data):
            assert batch.is_intact()
            found.append(batch)
            offset = batch.last_offset + 1
    return found


def flip(disk: MemoryDisk, path: Path, at: int = -1) -> None:
    disk.files[path].content[at] ^= 1


def cut(disk: MemoryDisk, path: Path) -> None:
    content = disk.files[path].content
    del content[len(content) // 2 :]


def gone(disk: MemoryDisk, path: Path) -> None:
    del disk.files[path]


def other(disk: MemoryDisk, path: Path) -> None:
    disk.files[path].content[:] = b"no such thing"


@pytest.mark.parametrize("damage", [flip, cut, gone, other])
@pytest.mark.parametrize("name", ["checkpoint", "snapshot", "index", "timeindex", "txnindex"])
def test_a_damaged_file_beside_the_log_is_never_believed(
    segment_bytes: int, name: str, damage: Callable[[MemoryDisk, Path], None]
) -> None:
    disk = MemoryDisk()
    log = opened(disk, segment_bytes=segment_bytes)
    write(log, 0, 20)
    before = summary(log)
    log.close()
    for path in [each for each in disk.files if each.name.endswith(name)]:
        if disk.files[path].content:
            damage(disk, path)
    again = opened(disk, segment_bytes=segment_bytes)
    assert summary(again) == before
    for offset in range(again.end_offset):
        assert next(iterate_batches(again.read(offset, 0))).base_offset == offset
    again.close()
    assert summary(opened(disk, segment_bytes=segment_bytes)) == before


def test_a_checkpoint_with_one_wrong_digit_is_not_believed() -> None:
    disk = MemoryDisk()
    log = opened(disk, segment_bytes=1_000)
    write(log, 0, 8)
    before = summary(log)
    log.close()
    content = disk.files[DIRECTORY / "t-0" / "checkpoint"].content
    for at in range(content.index(b"\n"), len(content)):
        if chr(content[at]).isdigit():
            content[at] ^= 1
            assert summary(opened(disk, segment_bytes=1_000)) == before, content[at - 20 : at + 20]
            content[at] ^= 1


def test_a_snapshot_of_another_moment_is_not_believed() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 4)
    before = summary(log)
    log.close()
    for path, inode in disk.files.items():
        if path.suffix == ".snapshot":
            inode.content[:] = encode_producer_snapshot([])
    assert summary(opened(disk)) == before


def test_a_checkpoint_of_another_log_is_not_believed() -> None:
    """Check that sizes or checksums unmask the checkpoint of a partly restored backup."""
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 4)
    log.close()
    old = {path: bytes(inode.content) for path, inode in disk.files.items()}
    log = opened(disk)
    log.append_marker(7, 0, True, 0)
    write(log, 4, 4)
    log.close()
    before = summary(opened(disk))
    for path, content in old.items():
        if path.suffix != ".log" and path in disk.files:
            disk.files[path].content[:] = content
    assert summary(opened(disk)) == before


def test_damage_below_the_recovery_point_is_not_served_and_is_named() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 20)
    size = next(iterate_batches(log.read(0, 0))).size
    log.close()
    flip(disk, LOG, size + 70)  # within the marker at offset 1
    again = opened(disk)
    served = again.fetch_batches(0, 1 << 20, committed=False, at_least_one=True)
    assert [batch.base_offset for batch in iterate_batches(bytes(served.records))] == [0]
    with pytest.raises(Refused, match=f"{LOG}: damaged at byte {size}") as refused:
        again.fetch_batches(1, 1 << 20, committed=False, at_least_one=True)
    assert refused.value.code == Code.CORRUPT_MESSAGE
    with pytest.raises(CorruptBatch, match=f"{LOG}: damaged at byte {size}"):
        again.read(1, 1 << 20)
    later = again.fetch_batches(2, 1 << 20, committed=False, at_least_one=True)
    assert next(iterate_batches(bytes(later.records))).base_offset == 2
    end = disk.files[LOG].content.index(bytes(later.records))
    assert again.describe_damage_at(1) == f"{LOG}, from byte {size} to byte {end}"
    disk.files[LOG].content[size + 8 : size + 12] = b"\0\0\0\x30"  # a wrong length as well
    assert opened(disk).describe_damage_at(1) == f"{LOG}, from byte {size} to byte {end}"


def test_a_damaged_offset_which_no_checksum_is_over_is_not_served() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 20)
    size = next(iterate_batches(log.read(0, 0))).size
    log.close()
    flip(disk, LOG, size)  # the first byte of the second batch
    again = opened(disk)
    served = again.fetch_batches(0, 1 << 20, committed=False, at_least_one=True)
    assert [batch.base_offset for batch in iterate_batches(bytes(served.records))] == [0]
    with pytest.raises(Refused, match=f"{LOG}: damaged at byte {size}"):
        again.fetch_batches(1, 1 << 20, committed=False, at_least_one=True)


@pytest.mark.parametrize("index_interval_bytes", [1, 4_096])
@pytest.mark.parametrize("moved_to", [0, 1, 3, 4, 6, 1_000])
@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_batch_that_says_another_offset_is_found_by_who_reads_all(
    at: int, moved_to: int, index_interval_bytes: int
) -> None:
    """Check that a wrong offset, which no checksum covers, is found by a full read.

    A reader who went on behind it would miss records.
    """
    if at == moved_to:
        pytest.skip("it is where it was")
    disk = MemoryDisk()
    options: dict[str, Any] = {"disk": disk, "index_interval_bytes": index_interval_bytes}
    log = partition(DIRECTORY, **options)
    for _ in range(6):
        log.append_produced(produced())
    log.close()
    content = disk.files[LOG].content
    size = len(content) // 6
    content[at * size : at * size + 8] = moved_to.to_bytes(8, "big")
    for read in (PartitionLog.read, _fetched):
        for max_bytes in (1, 1 << 20):
            again = partition(DIRECTORY, **options)
            with pytest.raises((CorruptBatch, Refused), match="damaged at byte"):
                read_all(again, read, max_bytes)


def read_all(
    log: PartitionLog, read: Callable[[PartitionLog, int, int], bytes], max_bytes: int
) -> None:
    offset = 0
    while offset < 6:
        offset = list(iterate_batches(read(log, offset, max_bytes)))[-1].last_offset + 1


def _fetched(log: PartitionLog, offset: int, max_bytes: int) -> bytes:
    return bytes(log.fetch_batches(offset, max_bytes, committed=False, at_least_one=True).records)


def test_a_damaged_batch_is_not_looked_into() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 3)
    log.close()
    flip(disk, LOG, 70)
    again = opened(disk)
    timestamps = again.timestamps
    for look_up in (
        partial(timestamps.find_max_timestamp, 0),
        partial(timestamps.find_offset, 0, 0, 5),
    ):
        with pytest.raises(Refused) as refused:
            look_up()
        assert refused.value.code == Code.CORRUPT_MESSAGE


def test_nothing_is_written_to_a_segment_whose_index_can_not_be_made_again() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    write(log, 0, 3)
    size = next(iterate_batches(log.read(0, 0))).size
    log.close()
    flip(disk, Path(LOG).with_suffix(".timeindex"), 0)
    disk.files[LOG].content[size + 8 : size + 12] = bytes(4)  # no batch begins there
    before = bytes(disk.files[LOG].content)
    again = opened(disk)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            again.append_produced(produced())
        assert refused.value.code == Code.KAFKA_STORAGE_ERROR
        assert disk.files[LOG].content == before


def test_a_segment_that_is_missing_in_the_middle_is_reported() -> None:
    disk = MemoryDisk()
    log = opened(disk, segment_bytes=1_000)
    write(log, 0, 20)
    paths = [path for path, _ in log.list_segment_files()]
    log.close()
    del disk.files[paths[1]]
    with pytest.raises(CorruptLog, match=str(paths[2])):
        opened(disk, segment_bytes=1_000)
