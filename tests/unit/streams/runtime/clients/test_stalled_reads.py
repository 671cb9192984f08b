"""Test that a consumer that reads nothing of what brokers have is found, and no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.runtime.clients.stalled_reads import StalledReadCheck

ONE, OTHER = Partition("in", 0), Partition("in", 1)


class World:
    """Holds the clock, what brokers have and where the consumer is."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ends = {ONE: 5, OTHER: 5}
        self.positions = {ONE: 5, OTHER: 5}
        self.is_written = False
        """Whether a record is written before each look."""
        self.error: Exception | None = None
        self.looked_at_s: list[float] = []
        self.check = StalledReadCheck(self.fetch_stable_offsets, lambda: self.now_s)

    def fetch_stable_offsets(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        self.looked_at_s.append(self.now_s)
        if self.is_written:
            self.ends[ONE] += 1
        if self.error is not None:
            raise self.error
        return {p: self.ends[p] for p in partitions if p in self.ends}

    def poll_nothing_until(self, end_s: float) -> list[tuple[float, dict[Partition, int]]]:
        """Poll nothing every second, and return when which partitions had stalled."""
        found = []
        while self.now_s < end_s:
            self.now_s += 1.0
            if stalled := self.check.find_stalled(lambda: self.positions):
                found.append((self.now_s, stalled))
        return found


def test_a_partition_that_stands_still_below_its_end_is_found_within_seconds() -> None:
    world = World()
    world.ends[OTHER] = 9
    assert world.poll_nothing_until(7.0) == [(7.0, {OTHER: 5})]
    assert world.looked_at_s == [4.0]


def test_it_is_looked_for_more_rarely_while_all_is_read() -> None:
    world = World()
    assert world.poll_nothing_until(400.0) == []
    gaps = [b - a for a, b in pairwise(world.looked_at_s)]
    assert gaps[:5] == [6.0, 12.0, 24.0, 48.0, 60.0]
    assert set(gaps[5:]) == {60.0}


def test_an_error_of_a_connection_lets_the_next_look_come_soon() -> None:
    world = World()
    world.poll_nothing_until(100.0)
    world.ends[ONE] = 6
    world.check.note_error()
    assert world.poll_nothing_until(110.0) == [(104.0, {ONE: 5})]


def test_what_moves_between_two_looks_has_not_stalled() -> None:
    world = World()
    world.ends[ONE] = 9
    world.poll_nothing_until(4.0)
    world.positions[ONE] = 8
    assert world.poll_nothing_until(7.0) == []
    assert world.poll_nothing_until(10.0) == [(10.0, {ONE: 8})]


@pytest.mark.parametrize("event", ["note_records", "reset_wait"])
def test_records_and_added_partitions_begin_the_wait_anew(event: str) -> None:
    world = World()
    world.ends[ONE] = 9
    world.poll_nothing_until(6.0)
    getattr(world.check, event)()
    assert world.poll_nothing_until(12.0) == []
    assert world.poll_nothing_until(13.0) == [(13.0, {ONE: 5})]


def test_each_replacement_waits_twice_as_long_for_a_batch_that_comes_slowly() -> None:
    world = World()
    world.is_written = True
    found_at_s = [at_s for at_s, _ in world.poll_nothing_until(3_000.0)]
    waits_s = [b - a for a, b in pairwise(found_at_s)]
    assert waits_s[:4] == [13.0, 25.0, 49.0, 97.0]
    assert max(waits_s) <= 1_201.0


def test_offsets_that_a_new_client_does_not_read_either_are_left_alone() -> None:
    world = World()
    world.ends[ONE] = 6  # compaction has removed the record at offset 5
    assert len(world.poll_nothing_until(1_000.0)) == 1
    world.check.note_error()
    assert len(world.poll_nothing_until(1_100.0)) == 1
    world.ends[ONE] = 7
    assert len(world.poll_nothing_until(1_300.0)) == 1


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("away"), AuthorizationError("Read", "topic", "t")]
)
def test_it_is_looked_again_soon_where_nobody_answers(error: Exception) -> None:
    world = World()
    world.ends[ONE] = 9
    world.error = error
    assert world.poll_nothing_until(100.0) == []
    world.error = None
    assert next(at_s for at_s, _ in world.poll_nothing_until(110.0)) <= 107.0


def test_a_partition_whose_leader_does_not_answer_is_not_taken_to_have_stalled() -> None:
    world = World()
    del world.ends[ONE]
    world.positions[ONE] = 0
    assert world.poll_nothing_until(100.0) == []
