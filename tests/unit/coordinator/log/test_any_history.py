"""Test logs in random histories against a model that is a list.

Histories have appends, transactions, checkpoints in the background, retention, deletions,
compactions, restarts, kills and losses of power.

A failure names its seed; `history(seed)` runs it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from coordinator.errors import Refused
from coordinator.log import checkpointing
from coordinator.log.batch import iterate_batches
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import partition, produced

DIRECTORY = Path("/data")
STEPS = 150


class Queue:
    """Stands in for the background thread: does its work when the history says so, or never."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], None], Callable[[Exception | None], None]]]
        self.waiting = deque()
        self.done: deque[tuple[Callable[[Exception | None], None], Exception | None]] = deque()

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        self.waiting.append((work, on_done))

    def work(self) -> None:
        """Do one piece of work without reporting it as done."""
        if self.waiting:
            work, done = self.waiting.popleft()
            try:
                work()
            except OSError as error:
                self.done.append((done, error))
            else:
                self.done.append((done, None))

    def report_done(self) -> None:
        if self.done:
            done, error = self.done.popleft()
            done(error)

    def close(self) -> None:
        pass


class Written(NamedTuple):
    base_offset: int
    last_offset: int
    producer_id: int


class History:
    """Represents one log and its model."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = MemoryDisk()
        self.clock = FakeClock()
        self.background = Queue()
        self.model: list[Written] = []
        self.start_offset = 0
        self.deleted_to = 0  # the requested offset, which survives a crash
        self.sequences = {1: 0, 2: 0, 3: 0}
        self.log = self.opened()

    def opened(self) -> PartitionLog:
        self.background = Queue()
        return partition(
            DIRECTORY,
            disk=self.disk,
            clock=self.clock,
            background=self.background,
            segment_bytes=900,
            index_interval_bytes=200,
            is_compacted=True,
            retention_ms=60_000,
            file_delete_delay_ms=500,
        )

    # Steps

    def append(self) -> None:
        count = self.random.randint(1, 3)
        batch = produced([b"v"] * count, timestamp_ms=self.clock.now_ms())
        self._note(self.log.append_produced(batch).base_offset, count, -1)

    def write_in_transaction(self) -> None:
        producer_id = self.random.choice((1, 2, 3))
        sequence = self.sequences[producer_id]
        batch = produced(
            [b"v"],
            producer_id=producer_id,
            sequence=sequence,
            transactional=True,
            timestamp_ms=self.clock.now_ms(),
        )
        self._note(self.log.append_produced(batch).base_offset, 1, producer_id)
        self.sequences[producer_id] += 1
        assert self.log.append_produced(batch).base_offset == self.model[-1].base_offset  # a retry

    def end_transaction(self) -> None:
        producer_id = self.random.choice((1, 2, 3))
        offset = self.log.append_marker(producer_id, 0, self.random.random() < 0.5, 0)
        self._note(offset, 1, producer_id)

    def save(self) -> None:
        self.log.checkpoints.save_checkpoint_in_background()

    def work(self) -> None:
        self.background.work()

    def report_done(self) -> None:
        self.background.report_done()

    def wait(self) -> None:
        self.clock.advance(self.random.choice((10, 1_000, 10_000)))

    def remove_expired(self) -> None:
        self.log.remove_expired_segments()
        assert self.log.start_offset >= self.start_offset
        self.start_offset = self.log.start_offset

    def delete_records(self) -> None:
        offset = self.random.randint(0, self.log.end_offset)
        self.start_offset = self.deleted_to = self.log.delete_records_before(offset)

    def compact(self) -> None:
        """Remove some of the batches that have no producer from some closed segments."""
        closed = self.log.compaction.list_closed_segments()
        if self.log.compaction.is_replacing or not closed:
            return
        first = self.random.randrange(len(closed))
        run = closed[first : first + self.random.randint(1, 3)]
        cleaned = self.log.compaction.create_cleaned_segment(run[0].base_offset)
        gone = set()
        for segment in run:
            position = 0
            while position < segment.size:
                for batch in iterate_batches(segment.read_batches(position, 300)):
                    position += batch.size
                    is_last = segment is run[-1] and position == segment.size
                    if batch.producer_id < 0 and self.random.random() < 0.5 and not is_last:
                        gone.add(batch.base_offset)
                        continue
                    cleaned.append_batch(
                        bytes(batch.data), batch.last_offset, batch.max_timestamp_ms
                    )
            for aborted in segment.transaction_index:
                cleaned.transaction_index.add_entry(aborted)

        def done(error: Exception | None) -> None:
            assert error is None
            self.model = [each for each in self.model if each.base_offset not in gone]

        self.log.compaction.replace_segments(run, cleaned, 0, done)

    def stop(self) -> None:
        while self.background.waiting or self.background.done:
            self.background.work()
            self.background.report_done()
        before = self.state()
        self.log.close()
        self.log = self.opened()
        assert self.state() == before

    def kill(self) -> None:
        while self.background.done and self.random.random() < 0.5:
            self.background.report_done()
        if self.log.compaction.is_replacing:  # decided or not: either model is right
            return
        before = self.state()
        self.disk = self.disk.kill()
        self.log = self.opened()
        # What retention had only forgotten comes back, until it is removed again.
        assert self.deleted_to <= self.log.start_offset <= self.start_offset
        if self.log.start_offset == self.start_offset:
            assert self.state() == before
        else:
            self.start_offset = self.log.start_offset

    def lose_power(self) -> None:
        if self.log.compaction.is_replacing:
            return
        self.disk = self.disk.lose_power()
        self.log = self.opened()
        self.model = [each for each in self.model if each.last_offset < self.log.end_offset]
        assert self.deleted_to <= self.log.start_offset <= self.start_offset
        self.start_offset = self.log.start_offset
        for producer_id in self.sequences:
            known = self.log.producers.find_producer(producer_id)
            last = known.batches[-1].last_sequence if known and known.batches else -1
            self.sequences[producer_id] = last + 1

    def _note(self, base_offset: int, count: int, producer_id: int) -> None:
        self.model.append(Written(base_offset, base_offset + count - 1, producer_id))

    # Invariants

    def state(self) -> object:
        log = self.log
        return (
            log.start_offset,
            log.end_offset,
            log.last_stable_offset,
            sorted(log.producers.iterate_producers(), key=lambda each: each[0]),
            log.find_aborted_transactions(log.start_offset, log.end_offset),
            log.timestamps.find_max_timestamp(log.start_offset),
        )

    def check(self) -> None:
        log = self.log
        found = []
        offset = log.start_offset
        while data := log.read(offset, self.random.choice((0, 300, 5_000))):
            for batch in iterate_batches(data):
                assert batch.is_intact()
                found.append(Written(batch.base_offset, batch.last_offset, batch.producer_id))
            offset = found[-1].last_offset + 1
        assert found == [each for each in self.model if each.last_offset >= log.start_offset]


STEPS_AND_WEIGHTS = {
    History.append: 30,
    History.write_in_transaction: 25,
    History.end_transaction: 12,
    History.save: 6,
    History.work: 20,
    History.report_done: 20,
    History.wait: 6,
    History.remove_expired: 3,
    History.delete_records: 1,
    History.compact: 8,
    History.stop: 1,
    History.kill: 3,
    History.lose_power: 1,
}


def history(seed: int) -> None:
    found = History(seed)
    steps = list(STEPS_AND_WEIGHTS)
    weights = list(STEPS_AND_WEIGHTS.values())
    for number in range(STEPS):
        step = found.random.choices(steps, weights)[0]
        try:
            step(found)
            found.check()
        except (AssertionError, Refused) as error:
            raise AssertionError(f"{seed=} step {number}: {step.__name__}: {error}") from error


@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in range(0, 60, 10)])
def test_a_log_is_what_was_written_to_it_whatever_happens(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointing, "SAVE_BATCHES", 20)
    for seed in seeds:
        history(seed)
