"""Provide partitions in a directory that pytest gives, with a clock and a disk of their own."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from coordinator.clock import Background, Clock
from coordinator.log.batch import RecordBatch
from coordinator.log.batch_validation import parse_single_batch, validate_produced_batch
from coordinator.log.disk import BrokerDisk, File, SystemDisk
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog
from coordinator.log.settings import LogSettings
from tests.own_batches import encode_batch
from tests.unit.coordinator.fakes import FakeClock

TOPIC_ID = UUID(int=7)
NOW_MS = 1_700_000_000_000


class StillClock:
    """Stands in for a clock: time stands still until a test moves it."""

    def __init__(self) -> None:
        self.time_ms = NOW_MS

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    def monotonic_ns(self) -> int:
        return self.time_ms * 1_000_000


class AtOnce:
    """Stands in for the background thread: does its work at once."""

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        try:
            work()
        except Exception as error:
            on_done(error)
        else:
            on_done(None)

    def close(self) -> None:
        pass


class FullDisk(SystemDisk):
    """Stands in for a disk that takes `bytes_left` more bytes and tears the write beyond."""

    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left

    def open_file(self, path: Path) -> File:
        return _FullFile(super().open_file(path), self)


class _FullFile:
    def __init__(self, file: File, disk: FullDisk) -> None:
        self._file = file
        self._disk = disk
        self.read = file.read
        self.size = file.size
        self.truncate = file.truncate
        self.flush = file.flush
        self.close = file.close

    def write(self, data: bytes | bytearray, position: int) -> None:
        room = self._disk.bytes_left
        self._file.write(data[:room], position)
        self._disk.bytes_left = max(0, room - len(data))
        if room < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")


class BadSector(SystemDisk):
    """Stands in for a disk that can't read the files below a directory of this name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def open_file(self, path: Path) -> File:
        file = super().open_file(path)
        if path.parent.name == self._name and path.suffix == ".log":
            file.read = _unreadable  # type: ignore[method-assign]
        return file


def _unreadable(count: int, position: int) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


def host(
    disk: BrokerDisk | None = None, clock: Clock | None = None, background: Background | None = None
) -> BrokerHost:
    """Create a host that does background work at once unless another way is given.

    Its timers never fire unless the clock is one that can be moved.
    """
    scheduler = clock if isinstance(clock, FakeClock) else FakeClock()
    return BrokerHost(
        disk or SystemDisk(), clock or StillClock(), scheduler, background or AtOnce()
    )


def partition(
    directory: Path,
    *,
    disk: BrokerDisk | None = None,
    clock: Clock | None = None,
    background: Background | None = None,
    segment_bytes: int = 1 << 30,
    index_interval_bytes: int = 4_096,
    log_append_time: bool = False,
    **others: Any,
) -> PartitionLog:
    """Open partition 0 of topic `t` with what the directory has."""
    settings = LogSettings(
        segment_bytes=segment_bytes,
        index_interval_bytes=index_interval_bytes,
        log_append_time=log_append_time,
        **others,
    )
    made = PartitionLog(
        "t", 0, TOPIC_ID, directory / "t-0", settings, host(disk, clock, background)
    )
    made.open_log()
    return made


def produced(
    values: Sequence[bytes] = (b"v",),
    *,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    timestamp_ms: int = NOW_MS,
) -> RecordBatch:
    """Build a batch as a client sends it, and check it."""
    data = encode_batch(
        [(None, value) for value in values],
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence if producer_id >= 0 else -1,
        transactional=transactional,
    )
    batch = parse_single_batch(data)
    validate_produced_batch(batch, LogSettings())
    return batch
