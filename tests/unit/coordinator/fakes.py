"""Provide fakes of the log, the clock, the background thread and the topics to coordinators."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID

from coordinator.errors import Code, Refused
from coordinator.log.batch import RecordBatch, iterate_batches
from coordinator.log.batch_encoding import encode_marker
from coordinator.log.producer_state import ProducerStateManager


class FakeLog:
    """Stands in for the partition in which a shard keeps its records.

    `fail_after` n: n more appends succeed, all later ones are refused; None: none is.
    """

    def __init__(self) -> None:
        self.producers = ProducerStateManager()  # stays empty
        self.start_offset = 0
        self.end_offset = 0
        self.batch_bytes_max = 1_048_588
        self.fail_after: int | None = None
        self.damage: str | None = None
        self.appended: list[tuple[int, bytes]] = []

    def refuse_writes_until_repaired(self, damage: str) -> None:
        self.damage = damage

    def describe_damage_at(self, offset: int) -> str:
        return f"the batch with offset {offset}"

    def append_internal(self, batch: bytes) -> int:
        if self.damage is not None:
            raise Refused(Code.KAFKA_STORAGE_ERROR, self.damage)
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise Refused(Code.KAFKA_STORAGE_ERROR, "the disk is full")
            self.fail_after -= 1
        if len(batch) > self.batch_bytes_max:
            raise Refused(Code.MESSAGE_TOO_LARGE, f"{len(batch)} bytes")
        base_offset = self.end_offset
        (last_offset_delta,) = struct.unpack_from(">i", batch, 23)
        self.appended.append((base_offset, struct.pack(">q", base_offset) + batch[8:]))
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
        for base_offset, data in self.appended:
            [batch] = iterate_batches(data)
            if batch.last_offset < offset:
                continue
            if found and len(found) + len(data) > max_bytes:
                break
            assert base_offset == batch.base_offset
            found += data
        return found

    def batches(self, first: int = 0) -> Iterator[RecordBatch]:
        """Yield all appended batches, or those from the one with this index on."""
        for _, data in self.appended[first:]:
            yield from iterate_batches(data)

    def markers(self) -> list[tuple[int, int, bool]]:
        """Return the (producer id, epoch, committed) of each marker, in log order."""
        return [
            (batch.producer_id, batch.producer_epoch, batch.decode_marker().is_commit)
            for batch in self.batches()
            if batch.is_control
        ]


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Stands in for Clock and Scheduler: time stands still until `advance` moves it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed_ms = 0
        self._sequence = count()
        self._calls: list[tuple[float, int, FakeTimer]] = []

    def now_ms(self) -> int:
        return self._start_ms + self._elapsed_ms

    def monotonic_ms(self) -> int:
        return self._elapsed_ms

    def monotonic_ns(self) -> int:
        return self._elapsed_ms * 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._calls, (self._elapsed_ms + delay_ms, next(self._sequence), timer))
        return timer

    def scheduled(self) -> int:
        """Return the number of calls that are scheduled."""
        return sum(timer.callback is not None for _, _, timer in self._calls)

    def spend(self, ms: int) -> None:
        """Let time pass as a long computation does, without making any scheduled call."""
        self._elapsed_ms += ms

    def advance(self, ms: int) -> None:
        """Move time on and make each scheduled call at its due time."""
        until_ms = self._elapsed_ms + ms
        while self._calls and self._calls[0][0] <= until_ms:
            due_ms, _, timer = heapq.heappop(self._calls)
            self._elapsed_ms = max(self._elapsed_ms, int(due_ms))
            if timer.callback is not None:
                timer.callback()
        self._elapsed_ms = max(self._elapsed_ms, until_ms)  # a call may have taken time


class FakeBackground:
    """Stands in for background threads: runs work at once, or when `run_all` is called."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.at_once = at_once
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        self.waiting.append((work, on_done))
        if self.at_once:
            self.run_all()

    def run_all(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done in waiting:
            work()
            done(None)

    def close(self) -> None:
        self.waiting.clear()


@dataclass(frozen=True)
class FakeTopic:
    name: str
    id: UUID
    partitions: Sequence[object]


class FakeTopicList:
    """Stands in for the broker's topics as the groups see them."""

    def __init__(self, topics: Mapping[str, int] | None = None) -> None:
        self.version = self.created_version = 0
        self._topics: dict[str, FakeTopic] = {}
        self._made = 0
        for name, partitions in (topics or {}).items():
            self.create(name, partitions)

    def create(self, name: str, partitions: int) -> UUID:
        self._made += 1
        self._topics[name] = FakeTopic(name, UUID(int=self._made), range(partitions))
        self.version += 1
        self.created_version = self.version
        return self._topics[name].id

    def grow(self, name: str, partitions: int) -> None:
        self._topics[name] = replace(self._topics[name], partitions=range(partitions))
        self.version += 1

    def delete(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def __iter__(self) -> Iterator[FakeTopic]:
        return iter(list(self._topics.values()))

    def get(self, name: str) -> FakeTopic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID | None) -> FakeTopic | None:
        return next((t for t in self._topics.values() if t.id == topic_id), None)
