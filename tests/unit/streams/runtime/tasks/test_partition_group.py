"""Test the order of records by timestamp, the waits for empty partitions, and the offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.common.message_headers import RepairedMessage
from streams.common.topic_partitions import Partition
from streams.runtime.tasks import partition_group
from streams.runtime.tasks.partition_group import (
    NEVER_WAIT,
    PartitionGroup,
    RecordOrderSettings,
    SinglePartitionQueue,
)
from streams.testing.cluster import Message
from tests.unit.properties import examples

LEFT, RIGHT, THIRD = Partition("left", 0), Partition("right", 0), Partition("third", 0)


class Consumer:
    """Stands in for a consumer whose lags a test sets; a lag that is not set is unknown."""

    def __init__(self) -> None:
        self.lags: dict[Partition, int] = {}
        self.paused: set[Partition] = set()

    def measure_lag(self, partition: Partition) -> int | None:
        return self.lags.get(partition)

    def pause_partition(self, partition: Partition) -> None:
        assert partition not in self.paused
        self.paused.add(partition)

    def resume_partition(self, partition: Partition) -> None:
        self.paused.remove(partition)


class Made:
    """Holds queues of two or three partitions, and the (topic, offset) of records taken."""

    def __init__(
        self,
        *partitions: Partition,
        idle_ms: int = 0,
        buffered_max: int = 1_000,
        bytes_max: int = 1_000,
        times: dict[Partition, int] | None = None,
        keeps_order: bool = True,
    ) -> None:
        self.consumer = Consumer()
        self.out: list[tuple[str, int]] = []
        self._next = dict.fromkeys(partitions, 0)
        receivers = dict.fromkeys(partitions, self._receive)
        order = RecordOrderSettings(idle_ms, buffered_max, bytes_max, keeps_order)
        self.queues = PartitionGroup(receivers, times or {}, self.consumer, order)

    def add(self, partition: Partition, *times_ms: int, value: bytes | None = b"v") -> None:
        begin = self._next[partition]
        self.queues.add_records(partition, messages(partition, begin, times_ms, value))
        self._next[partition] += len(times_ms)

    def process(self, limit: int = 1_000, now_ms: int = 0) -> list[tuple[str, int]]:
        self.out = []
        for receive, run in self.queues.pop_next_runs(limit, now_ms):
            for message in run:
                receive(message)
        return self.out

    def _receive(self, message: Any) -> None:
        self.out.append((message.topic(), message.offset()))


def messages(
    partition: Partition, begin: int, times_ms: Any, value: bytes | None = b"v"
) -> list[Any]:
    return [
        Message(partition, begin + index, b"k", value, time_ms)
        for index, time_ms in enumerate(times_ms)
    ]


def test_the_partition_whose_first_record_is_the_oldest_goes_next() -> None:
    made = Made(LEFT, RIGHT, idle_ms=NEVER_WAIT)
    made.add(RIGHT, 10, 30)
    made.add(LEFT, 20, 40)
    assert made.process() == [("right", 0), ("left", 0), ("right", 1), ("left", 1)]


def test_the_order_in_which_records_were_taken_is_told_once() -> None:
    made = Made(RIGHT, LEFT, idle_ms=NEVER_WAIT)
    made.add(RIGHT, 10, 30, 31)
    made.add(LEFT, 20, 40)
    made.process(limit=4)
    assert made.queues.pop_record_order() == [(1, 1), (0, 1), (1, 2)]
    assert made.queues.pop_record_order() == []
    made.process()
    assert made.queues.pop_record_order() == [(0, 1)]


def test_an_order_of_too_many_runs_is_not_told_until_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_group, "ORDER_RUNS_MAX", 2)
    made = Made(RIGHT, LEFT, idle_ms=NEVER_WAIT)
    made.add(RIGHT, 10, 30, 50)
    made.add(LEFT, 20, 40)
    made.process()
    assert made.queues.pop_record_order() is None
    made.add(LEFT, 60)
    made.process()
    assert made.queues.pop_record_order() == [(0, 1)]


def test_without_a_ledger_no_order_is_kept() -> None:
    made = Made(RIGHT, LEFT, idle_ms=NEVER_WAIT, keeps_order=False)
    made.add(RIGHT, 10)
    made.process()
    assert made.queues.pop_record_order() is None


def test_of_a_single_partition_the_number_of_records_is_told() -> None:
    straight = SinglePartitionQueue(LEFT, lambda message: None)
    straight.add_records(LEFT, messages(LEFT, 0, [10, 20, 30]))
    straight.pop_next_runs(2, now_ms=0)
    straight.pop_next_runs(2, now_ms=0)
    assert straight.pop_record_order() == [(0, 3)]
    assert straight.pop_record_order() == []


def test_a_record_with_repaired_headers_is_taken_as_any_other() -> None:
    made = Made(LEFT, RIGHT, idle_ms=NEVER_WAIT)
    made.queues.add_records(LEFT, [RepairedMessage(messages(LEFT, 0, [10])[0], [], 0)])
    assert made.process() == [("left", 0)]


def test_of_the_same_time_the_first_partition_goes_first() -> None:
    made = Made(RIGHT, LEFT, idle_ms=NEVER_WAIT)
    made.add(RIGHT, 10, 10)
    made.add(LEFT, 10, 10)
    assert [topic for topic, _ in made.process()] == ["left", "left", "right", "right"]


def test_within_a_partition_offsets_keep_their_order_whatever_their_times() -> None:
    made = Made(LEFT, RIGHT, idle_ms=NEVER_WAIT)
    made.add(LEFT, 50, 10)
    made.add(RIGHT, 40, 60)
    assert made.process() == [("right", 0), ("left", 0), ("left", 1), ("right", 1)]


def test_an_empty_partition_is_waited_for_while_its_lag_is_unknown_or_above_zero() -> None:
    made = Made(LEFT, RIGHT)
    made.add(LEFT, 10)
    assert made.process() == []
    made.consumer.lags[RIGHT] = 3
    assert made.process() == []
    made.consumer.lags[RIGHT] = 0
    assert made.process() == [("left", 0)]


def test_with_idle_time_an_empty_partition_at_its_end_is_waited_for_so_long() -> None:
    made = Made(LEFT, RIGHT, idle_ms=100)
    made.add(LEFT, 10)
    made.consumer.lags[RIGHT] = 0
    assert made.process(now_ms=1_000) == []
    assert made.process(now_ms=1_099) == []
    assert made.process(now_ms=1_100) == [("left", 0)]
    made.add(LEFT, 20)
    assert made.process(now_ms=1_101) == [("left", 1)], "the wait for it is over until it has some"


def test_records_of_the_partition_that_was_waited_for_begin_its_wait_anew() -> None:
    made = Made(LEFT, RIGHT, idle_ms=100)
    made.add(LEFT, 10, 30)
    made.consumer.lags[RIGHT] = 0
    made.process(now_ms=0)
    made.add(RIGHT, 20)
    assert made.process(now_ms=50) == [("left", 0), ("right", 0)]
    assert made.process(now_ms=120) == []
    assert made.process(now_ms=150) == [("left", 1)]


def test_the_wait_for_the_second_empty_partition_begins_when_that_for_the_first_is_over() -> None:
    made = Made(LEFT, RIGHT, THIRD, idle_ms=100)
    made.add(LEFT, 10)
    made.consumer.lags = {RIGHT: 0, THIRD: 0}
    assert [bool(made.process(now_ms=now_ms)) for now_ms in (0, 100, 150, 200)] == [
        *[False] * 3,
        True,
    ]


def test_nothing_is_ready_when_all_partitions_are_empty() -> None:
    for idle_ms in (NEVER_WAIT, 0):
        made = Made(LEFT, RIGHT, idle_ms=idle_ms)
        made.consumer.lags = {LEFT: 0, RIGHT: 0}
        assert made.process() == []


def test_a_partition_with_too_many_records_is_paused_until_half_of_them_are_processed() -> None:
    made = Made(LEFT, RIGHT, buffered_max=4, idle_ms=NEVER_WAIT)
    made.add(LEFT, *range(4))
    assert made.consumer.paused == set()
    made.add(LEFT, 4)
    assert made.consumer.paused == {LEFT}
    made.process(limit=2)
    assert made.consumer.paused == {LEFT}
    made.process(limit=1)
    assert made.consumer.paused == set()


def test_of_large_records_fewer_are_buffered_before_a_partition_is_paused() -> None:
    made = Made(LEFT, RIGHT, bytes_max=100, idle_ms=NEVER_WAIT)
    made.add(LEFT, *range(10), value=b"0123456789")
    assert made.consumer.paused == set()
    made.add(LEFT, 10, value=b"0123456789")
    assert made.consumer.paused == {LEFT}
    made.process(limit=6)
    assert made.consumer.paused == set()
    made.add(LEFT, 11, value=b"0" * 101)
    assert made.consumer.paused == {LEFT}
    made.process(limit=5)
    assert made.consumer.paused == {LEFT}, "half of no record is none"
    made.process(limit=1)
    assert made.consumer.paused == set()


def test_deletions_have_no_bytes_and_are_limited_by_their_number() -> None:
    made = Made(LEFT, RIGHT, buffered_max=4, bytes_max=1, idle_ms=NEVER_WAIT)
    made.add(LEFT, *range(4), value=None)
    assert made.consumer.paused == set()
    made.add(LEFT, 4, value=None)
    assert made.consumer.paused == {LEFT}


def test_the_offset_to_commit_is_that_of_the_first_record_that_waits() -> None:
    made = Made(LEFT, RIGHT)
    made.add(LEFT, 10, 30)
    made.add(RIGHT, 20)
    made.process()
    assert (made.queues.next_offset(LEFT), made.queues.next_offset(RIGHT)) == (1, None)


def test_partition_time_is_the_highest_that_was_processed_and_goes_on_after_a_restart() -> None:
    made = Made(LEFT, RIGHT, idle_ms=NEVER_WAIT, times={LEFT: 15})
    made.add(LEFT, 10, 5)
    made.add(RIGHT, 40, 90)
    made.process(limit=3)
    assert made.queues.partition_times_ms(stream_time_ms=40) == {LEFT: 15, RIGHT: 40}


def test_a_record_that_could_not_be_read_does_not_move_its_partitions_time() -> None:
    made = Made(LEFT, RIGHT, idle_ms=NEVER_WAIT)
    made.add(LEFT, 10, 1_000_000)
    made.process()
    assert made.queues.partition_times_ms(stream_time_ms=10)[LEFT] == 10


def test_one_partition_goes_straight_through_and_knows_what_waits() -> None:
    out: list[Any] = []
    straight = SinglePartitionQueue(LEFT, out.append)
    straight.add_records(LEFT, messages(LEFT, 5, [30, 20, 10]))
    ((receive, run),) = straight.pop_next_runs(2, now_ms=0)
    for message in run:
        receive(message)
    assert [message.offset() for message in out] == [5, 6]
    assert straight.next_offset(LEFT) == 7
    straight.add_records(LEFT, messages(LEFT, 8, [40]))
    ((_, rest),) = straight.pop_next_runs(100, now_ms=0)
    assert [message.offset() for message in rest] == [7, 8]
    assert straight.next_offset(LEFT) is None
    assert straight.pop_next_runs(100, now_ms=0) == []


@dataclass
class Model:
    """Represents PartitionGroup as a list for each partition, and takes one record at a time."""

    partitions: list[Partition]
    idle_ms: int
    records: dict[Partition, list[tuple[int, int]]] = field(default_factory=dict)
    deadlines: dict[Partition, int] = field(default_factory=dict)

    def ready(self, lags: dict[Partition, int], now_ms: int) -> bool:
        filled = [p for p in self.partitions if self.records.get(p)]
        if self.idle_ms == NEVER_WAIT or not filled:
            return bool(filled)
        for partition in self.partitions:
            if partition in filled:
                self.deadlines.pop(partition, None)
            elif lags.get(partition, -1) != 0:
                self.deadlines.pop(partition, None)
                return False
            elif now_ms < self.deadlines.setdefault(partition, now_ms + self.idle_ms):
                return False
        return True

    def next(self, lags: dict[Partition, int], now_ms: int) -> tuple[str, int] | None:
        if not self.ready(lags, now_ms):
            return None
        filled = [p for p in self.partitions if self.records.get(p)]
        oldest = min(filled, key=lambda p: (self.records[p][0][0], self.partitions.index(p)))
        _, offset = self.records[oldest].pop(0)
        return oldest.topic, offset


Step = tuple[str, Any]
PARTITIONS = [LEFT, RIGHT, THIRD]
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.tuples(
                st.sampled_from(PARTITIONS), st.lists(st.integers(0, 20), min_size=1, max_size=4)
            ),
        ),
        st.tuples(
            st.just("lag"), st.tuples(st.sampled_from(PARTITIONS), st.sampled_from([None, 0, 2]))
        ),
        st.tuples(st.just("wait"), st.integers(0, 30)),
        st.tuples(st.just("process"), st.integers(1, 6)),
    ),
    max_size=30,
)


A_LAST_RECORD_EMPTIES: list[Step] = [
    ("add", (LEFT, [1])),
    ("add", (RIGHT, [0, 1])),
    ("lag", (THIRD, 0)),
    ("add", (THIRD, [0])),
    ("process", 2),
    ("wait", 10),
    ("process", 1),
]


@given(steps, st.sampled_from([NEVER_WAIT, 0, 10]), st.integers(1, 4))
@example(A_LAST_RECORD_EMPTIES, 10, 1)  # The wait for an emptied partition begins with the next.
@examples(300)
def test_queues_do_what_kafka_streams_partition_group_does(
    history: list[Step], idle_ms: int, buffered_max: int
) -> None:
    made = Made(*PARTITIONS, idle_ms=idle_ms, buffered_max=buffered_max)
    model = Model(PARTITIONS, idle_ms)
    now_ms = 0
    for step, given_ in history:
        match step:
            case "add":
                partition, times_ms = given_
                begin = made._next[partition]
                made.add(partition, *times_ms)
                model.records.setdefault(partition, []).extend(
                    (time_ms, begin + index) for index, time_ms in enumerate(times_ms)
                )
            case "lag":
                partition, lag = given_
                made.consumer.lags.pop(partition, None)
                if lag is not None:
                    made.consumer.lags[partition] = lag
            case "wait":
                now_ms += given_
            case _:
                expected = []
                for _ in range(given_):
                    record = model.next(made.consumer.lags, now_ms)
                    if record is None:
                        break
                    expected.append(record)
                assert made.process(given_, now_ms) == expected
        for partition in PARTITIONS:
            left = model.records.get(partition, [])
            assert made.queues.next_offset(partition) == (left[0][1] if left else None)
            assert (partition in made.consumer.paused) <= (len(left) > buffered_max // 2)
            assert (len(left) > buffered_max) <= (partition in made.consumer.paused)
