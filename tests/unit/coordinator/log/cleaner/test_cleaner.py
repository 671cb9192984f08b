"""Test the cleaner on several logs in virtual time, on a disk in memory that fails and crashes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.log.batch import iterate_batches
from coordinator.log.cleaner.cleanable_section import find_cleanable_section
from coordinator.log.cleaner.cleaning import LogCleaningAborted, clean_log
from coordinator.log.cleaner.offset_checkpoint import FILE_NAME, read_first_dirty_offsets
from coordinator.log.cleaner.steps import AsyncOperation, BackgroundCall, Steps, run_to_completion
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.cleaner.topics import Topic
from tests.unit.coordinator.log.cleaner.worlds import (
    DATA,
    PID,
    World,
    filled,
    has_each_key_once_where_it_is_clean,
    records,
    values,
    write,
)
from tests.unit.coordinator.log.test_checkpoint import FailingAfter
from tests.unit.properties import examples


def test_a_log_is_cleaned_by_itself_after_the_backoff() -> None:
    world = World(MemoryDisk(), log_cleaner_backoff_ms=1_000)
    log = filled(world)
    expected = values(log)
    world.cleaner.start_cleaning()
    world.clock.advance(999)
    assert len(list(records(log))) == 50
    world.clock.advance(1_000)
    assert values(log) == expected
    closed = [each for each in records(log) if each[0] < log.compaction.active_base_offset]
    assert len(closed) == len({key for _, key, _ in closed}) == 5
    assert read_first_dirty_offsets(world.disk, DATA) == {
        ("t", 0): log.compaction.active_base_offset
    }


def test_the_checkpoint_is_kafkas() -> None:
    world = World(MemoryDisk())
    log = filled(world)
    world.cleaner.clean_regardless_of_ratio()
    content = world.disk.read_file(DATA / FILE_NAME)
    assert content == b"0\n1\nt 0 %d\n" % log.compaction.active_base_offset
    assert read_first_dirty_offsets(MemoryDisk(), DATA) == {}


@pytest.mark.parametrize("content", [b"", b"1\n0\n", b"0\n2\nt 0 5\n", b"0\n1\nt 0\n", b"\xff"])
def test_a_checkpoint_that_cannot_be_read_counts_for_nothing(content: bytes) -> None:
    disk = MemoryDisk()
    disk.make_directory(DATA)
    disk.replace_file(DATA / FILE_NAME, content)
    assert read_first_dirty_offsets(disk, DATA) == {}


def test_segments_become_fewer_and_what_was_cleaned_survives_crashes() -> None:
    disk = MemoryDisk()
    world = World(disk)
    log = filled(world)
    before = len(log.compaction.list_closed_segments())
    assert world.cleaner.clean_regardless_of_ratio() == 1
    assert world.cleaner.clean_regardless_of_ratio() == 0
    for i in range(10):
        write(log, b"key-0", b"more-%d" % i)
    expected = values(log)
    assert world.cleaner.clean_regardless_of_ratio() == 1
    assert len(log.compaction.list_closed_segments()) < before - 4
    assert values(log) == expected
    found = list(records(log))
    assert list(records(World(disk.kill()).log)) == found
    active = log.compaction.active_base_offset  # what is in the active segment has not been flushed
    again = World(disk.lose_power()).log
    assert [each for each in records(again) if each[0] < active] == [
        each for each in found if each[0] < active
    ]


def test_nothing_else_waits_for_longer_than_a_slice() -> None:
    world = World(MemoryDisk(), log_cleaner_backoff_ms=0)
    log = filled(world, count=2_000, keys=2_000, **{"internal.segment.bytes": "20000"})
    world.cleaner.start_cleaning()
    turns = 0
    while not read_first_dirty_offsets(world.disk, DATA):
        write(log, b"busy", b"%d" % turns)
        world.clock.advance(1)
        turns += 1
    assert turns > 20


def test_a_topic_that_is_deleted_while_it_is_cleaned_is_dropped() -> None:
    world = World(MemoryDisk(), log_cleaner_backoff_ms=0)
    filled(world, count=500, keys=500)
    world.create("other")
    write(world.topics.list_all_partitions()[1], b"k", b"v")
    world.cleaner.start_cleaning()
    world.clock.advance(10)
    topic = world.topics.get("t")
    assert topic is not None
    world.topics.delete_topic(topic)
    world.clock.advance(1_000)
    assert read_first_dirty_offsets(world.disk, DATA) == {}
    again = filled(world)
    world.clock.advance(1_000)
    assert read_first_dirty_offsets(world.disk, DATA) == {
        ("t", 0): again.compaction.active_base_offset
    }


class OneAtATime:
    """Stands in for the thread of long calls, and runs one call at a time.

    When the broker stops, the running call ends, waiting ones never begin, and no result is
    delivered.
    """

    def __init__(self) -> None:
        self.at: tuple[Callable[[], None], Callable[[Exception | None], None]] | None = None

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        if self.at is None:
            self.at = work, on_done

    def go_on(self) -> None:
        if self.at is not None:
            (work, done), self.at = self.at, None
            work()
            done(None)

    def close(self) -> None:
        if self.at is not None:
            self.at[0]()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_broker_that_stops_while_a_replacement_is_decided_loses_nothing(is_killed: bool) -> None:
    background = OneAtATime()
    disk = MemoryDisk()
    world = World(disk, background=background, log_cleaner_backoff_ms=0)
    log = filled(world, keys=7)
    while background.at is not None:
        background.go_on()
    expected = values(log)
    world.cleaner.start_cleaning()
    while not log.compaction.is_replacing:
        world.clock.advance(1)
    world.cleaner.close()
    background.close()
    if not is_killed:
        world.topics.close()
    again = World(disk.kill()).log
    assert values(again) == expected
    assert again.end_offset == 50


def test_segments_that_go_while_they_are_cleaned_stop_the_cleaning() -> None:
    world = World(MemoryDisk(), log_cleaner_backoff_ms=10)
    log = filled(world, count=500, keys=500, **{"cleanup.policy": "compact,delete"})
    world.cleaner.start_cleaning()
    world.clock.advance(20)
    log.delete_records_before(300)
    assert log.start_offset == 300
    world.clock.advance(5_000)
    assert [offset for offset, _, _ in records(log)] == list(range(log.start_offset, 500))
    assert read_first_dirty_offsets(world.disk, DATA) == {
        ("t", 0): log.compaction.active_base_offset
    }


def test_what_retention_unlinks_between_two_steps_of_a_cleaning_is_not_read() -> None:
    configs = {"cleanup.policy": "compact,delete", "file.delete.delay.ms": "0"}
    for before in range(1_000):
        world = World(MemoryDisk())
        log = filled(world, count=30, keys=30, **configs)
        steps = clean_log(log, find_cleanable_section(log, world.clock.now_ms()), 10_000, 0)
        if not taken(steps, before):
            break
        log.delete_records_before(20)
        world.clock.advance(1)
        with suppress(LogCleaningAborted):
            run_to_completion(steps)
        steps.close()
        names = world.disk.list_names(log.directory)
        oldest = min(int(name[:20]) for name in names if name.endswith(".log"))
        assert oldest == log.compaction.list_closed_segments()[0].base_offset
    assert before > 10


def taken(steps: Steps[int], count: int) -> bool:
    """Run so many steps of a cleaning; return False if it ended before."""
    for _ in range(count):
        match next(steps, False):
            case False:
                return False
            case AsyncOperation(start):
                start(lambda error: None)
            case BackgroundCall(call):
                call()
    return True


def test_a_map_with_little_room_cleans_in_passes_to_the_same_end() -> None:
    world, small = World(MemoryDisk()), World(MemoryDisk(), log_cleaner_dedupe_buffer_size=600)
    for each in (world, small):
        filled(each, count=100, keys=30)
    assert world.cleaner.clean_regardless_of_ratio() == 1
    assert small.cleaner.clean_regardless_of_ratio() > 1
    assert list(records(small.log)) == list(records(world.log))


def test_what_is_not_stable_is_not_cleaned() -> None:
    world = World(MemoryDisk())
    log = filled(world)
    write(
        log, b"key-0", b"open", producer_id=PID, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    open_at = log.last_stable_offset
    for i in range(50):
        write(log, b"key-1", b"later-%d" % i)
    world.cleaner.clean_regardless_of_ratio()
    assert read_first_dirty_offsets(world.disk, DATA)[("t", 0)] <= open_at
    assert [offset for offset, _, _ in records(log) if offset >= open_at] == list(
        range(open_at, open_at + 51)
    )


def test_aborted_records_are_gone_from_the_file_and_committed_ones_are_read() -> None:
    disk = MemoryDisk()
    world = World(disk)
    log = world.create()
    for i in range(30):
        write(
            log, b"key-%d" % (i % 3), b"%d" % i, producer_id=PID, producer_epoch=0,
            base_sequence=i, transactional=True,
        )  # fmt: skip
        log.append_marker(PID, 0, committed=i % 2 == 0, coordinator_epoch=0)
    for i in range(10):
        write(log, b"x", b"%d" % i)
    world.cleaner.clean_regardless_of_ratio()
    closed = {
        key: value
        for offset, key, value in records(log)
        if offset < log.compaction.active_base_offset
    }
    assert closed == {b"key-0": b"24", b"key-1": b"28", b"key-2": b"26", b"x": closed[b"x"]}
    again = World(disk.kill()).log
    assert again.last_stable_offset == again.end_offset
    assert again.find_aborted_transactions(0, again.end_offset) == log.find_aborted_transactions(
        0, log.end_offset
    )


def test_a_full_disk_leaves_the_log_as_it_was_and_it_is_tried_again() -> None:
    disk = FailingAfter(10_000)
    world = World(disk, log_cleaner_backoff_ms=100)
    log = filled(world)
    before = list(records(log))
    disk.calls = 0
    world.cleaner.start_cleaning()
    world.clock.advance(1_000)
    assert list(records(log)) == before
    assert not [path for path in disk.files if path.name.endswith(".cleaned")]
    disk.calls = 10_000
    world.clock.advance(60_000)
    assert len(list(records(log))) < len(before)


def test_killed_anywhere_the_log_is_whole_and_can_be_cleaned_again() -> None:
    outcomes = set()
    for calls in range(45):
        disk = FailingAfter(10_000)
        world = World(disk)
        log = filled(world, count=60, keys=4)
        log.checkpoints.save_checkpoint_in_background()
        expected = values(log)
        disk.calls = calls
        world.cleaner.clean_regardless_of_ratio()
        live = list(records(log))
        assert values(log) == expected
        after = disk.kill()
        again = World(after)
        assert list(records(again.log)) == live, f"{calls=}"
        assert has_each_key_once_where_it_is_clean(again.log), f"{calls=}"
        assert not again.log.compaction.is_replacing, f"{calls=}: nothing can be cleaned"
        again.cleaner.clean_regardless_of_ratio()
        assert values(again.log) == expected, f"{calls=}"
        assert not [path for path in after.files if path.suffix in (".cleaned", ".swap")]
        outcomes.add(len(live))
    assert len(outcomes) > 2  # nothing, some runs, all


EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.sampled_from([b"a", b"b", b"c"]),
            st.one_of(st.none(), st.binary(max_size=60)),
        ),
        st.tuples(
            st.just("stage"),
            st.sampled_from([7, 8]),
            st.sampled_from([b"a", b"b", b"c"]),
            st.one_of(st.none(), st.binary(max_size=60)),
        ),
        st.tuples(st.just("end"), st.sampled_from([7, 8]), st.booleans()),
        st.tuples(st.just("clean"), st.integers(1, 600)),
        st.tuples(st.just("crash"), st.booleans()),
    ),
    max_size=60,
)


def seen(log: PartitionLog) -> dict[bytes | None, bytes]:
    """Return the last values that a read_committed consumer gets by fetches of a few bytes each."""
    found: dict[bytes | None, bytes] = {}
    offset = log.start_offset
    while offset < log.last_stable_offset:
        fetched = log.fetch_batches(offset, 500, committed=True, at_least_one=True)
        index = list(fetched.aborted or [])
        aborting: set[int] = set()
        got = list(iterate_batches(bytes(fetched.records)))
        if not got:
            break
        for batch in got:
            for entry in [each for each in index if each.first_offset <= batch.last_offset]:
                aborting.add(entry.producer_id)
                index.remove(entry)
            offset = batch.last_offset + 1
            if batch.is_control:
                if batch.record_count and not batch.decode_marker().is_commit:
                    aborting.discard(batch.producer_id)
                continue
            if batch.is_transactional and batch.producer_id in aborting:
                continue
            for record in batch.iterate_records():
                if record.value is None:
                    found.pop(record.key, None)
                else:
                    found[record.key] = record.value
    return found


@examples(150)
@given(EVENTS)
def test_a_log_that_is_cleaned_and_crashes_has_the_same_last_values(
    events: list[tuple[Any, ...]],
) -> None:
    model = Topic()
    disk = MemoryDisk()
    world = World(disk)
    world.create()
    sequences = dict.fromkeys((7, 8), 0)
    for event in events:
        match event:
            case ("write", key, value):
                write(world.log, key, value)
                model.write((key, value))
            case ("stage", pid, key, value):
                write(
                    world.log, key, value, producer_id=pid, producer_epoch=0,
                    base_sequence=sequences[pid], transactional=True,
                )  # fmt: skip
                sequences[pid] += 1
                model.write((key, value), producer_id=pid, transactional=True)
            case ("end", pid, committed):
                world.log.append_marker(pid, 0, committed, 0)
                model.end(pid, committed=committed)
            case ("clean", room):
                world.config = replace(world.config, log_cleaner_dedupe_buffer_size=room)
                world.cleaner.clean_regardless_of_ratio()
            case ("crash", forgets):
                disk = disk.kill()
                if forgets:  # everything is read again
                    for path in [each for each in disk.files if each.name == "checkpoint"]:
                        del disk.files[path]
                world = World(disk)
        assert seen(world.log) == model.last_values()
        assert has_each_key_once_where_it_is_clean(world.log)
        assert world.log.last_stable_offset == model.stable_offset
    for pid, sequence in sequences.items():
        if sequence:
            known = world.log.producers.find_producer(pid)
            assert known is not None
            assert known.batches[-1].last_sequence == sequence - 1
