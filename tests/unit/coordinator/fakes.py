"""Fakes for the coordinators' tests: a log in memory that can fail, and a clock that is moved."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterator
from itertools import count

from coordinator.errors import Code, Refused
from coordinator.log.batch import Batch, batches, encode_marker
from coordinator.log.producers import Producers


class FakeLog:
    """One partition, in memory, as a shard sees it.

    `fail_after` n: n more appends succeed, all later ones are refused; None: none is.
    """

    def __init__(self) -> None:
        self.producers = Producers()  # none is ever known
        self.start_offset = 0
        self.end_offset = 0
        self.fail_after: int | None = None
        self._batches: list[tuple[int, bytes]] = []

    def append_internal(self, batch: bytes) -> int:
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise Refused(Code.KAFKA_STORAGE_ERROR, "the disk is full")
            self.fail_after -= 1
        base_offset = self.end_offset
        (last_offset_delta,) = struct.unpack_from(">i", batch, 23)
        self._batches.append((base_offset, struct.pack(">q", base_offset) + batch[8:]))
        self.end_offset = base_offset + last_offset_delta + 1
        return base_offset

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> int:
        return self.append_internal(
            encode_marker(
                producer_id,
                producer_epoch,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                timestamp_ms=0,
            )
        )

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = b""
        for base_offset, data in self._batches:
            [batch] = batches(data)
            if batch.last_offset < offset:
                continue
            if found and len(found) + len(data) > max_bytes:
                break
            assert base_offset == batch.base_offset
            found += data
        return found

    def batches(self) -> Iterator[Batch]:
        """All that was appended."""
        for _, data in self._batches:
            yield from batches(data)

    def markers(self) -> list[tuple[int, int, bool]]:
        """(producer id, epoch, committed) of each marker, in order."""
        return [
            (batch.producer_id, batch.producer_epoch, batch.marker()[0])
            for batch in self.batches()
            if batch.is_control
        ]


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Clock and Scheduler in one: time stands still until `advance` moves it, call by call."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed_ms = 0
        self._sequence = count()
        self._calls: list[tuple[float, int, FakeTimer]] = []

    def now_ms(self) -> int:
        return self._start_ms + self._elapsed_ms

    def monotonic_ms(self) -> int:
        return self._elapsed_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._calls, (self._elapsed_ms + delay_ms, next(self._sequence), timer))
        return timer

    def scheduled(self) -> int:
        """How many calls are still to come."""
        return sum(timer.callback is not None for _, _, timer in self._calls)

    def advance(self, ms: int) -> None:
        """Move time on, making every call that falls due when it falls due."""
        until_ms = self._elapsed_ms + ms
        while self._calls and self._calls[0][0] <= until_ms:
            due_ms, _, timer = heapq.heappop(self._calls)
            self._elapsed_ms = max(self._elapsed_ms, int(due_ms))
            if timer.callback is not None:
                timer.callback()
        self._elapsed_ms = until_ms
