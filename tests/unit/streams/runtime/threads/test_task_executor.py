"""Test running tasks: slices, order of records, time, punctuations, and early commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from state.errors import StoreCorrupted
from streams import App, Processor, ProcessorContext, Record, Store, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo
from streams.runtime.offsets.offset_metadata import decode_metadata, encode_metadata
from streams.settings.exception_handlers import ExceptionHandlers
from streams.topology.build import Topology
from tests.unit.streams.runtime.world import (
    Through,
    World,
    assign_partitions,
    build_counting_topology,
    build_mapping_topology,
    build_one_task_topology,
)

INPUT = Partition("in", 0)
LEFT, RIGHT = Partition("left", 0), Partition("right", 0)
Init = Callable[[ProcessorContext[str, str]], object]


class Scripted(Through):
    """Forwards each record, and calls functions of the test in `init` and `process`."""

    def __init__(self, init: Init, process: Callable[[Any, Record[str, str]], object]) -> None:
        self.when_init = init
        self.when_process = process

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.when_init(context)

    def process(self, record: Record[str, str]) -> None:
        super().process(record)
        self.when_process(self.context, record)


def nothing(*given: object) -> None:
    pass


def processing(
    *,
    init: Init = nothing,
    process: Callable[[Any, Record[str, str]], object] = nothing,
    topics: Sequence[str] = ("in",),
) -> Topology:
    return build_one_task_topology(*topics, processor=lambda: Scripted(init, process))


def offsets_sent(world: World, partition: Partition = INPUT) -> list[int]:
    """Return the offset of `partition` in each commit."""
    sent = [dict(offsets) for producer in world.producers for offsets in producer.sent]
    return [offsets[partition].offset for offsets in sent]


def numbers_sent(world: World) -> list[int]:
    """Return the commit numbers in the metadata of the committed offsets."""
    sent = [dict(offsets) for producer in world.producers for offsets in producer.sent]
    numbers = [decode_metadata(offsets[INPUT].metadata).commit_number for offsets in sent]
    return [number for number in numbers if number is not None]


def values(world: World) -> list[str]:
    return [(value or b"").decode() for _, value in world.kafka.committed("out")]


def slow_world(state: Path, commit_every_ms: int) -> World:
    """Return a world with twenty records of 0.1 s each, whose second batch is cut into slices."""
    worlds: list[World] = []

    def take_time(value: str) -> str:
        worlds[0].clock.advance_monotonic_clock(0.1)
        return value

    worlds.append(World(build_mapping_topology(take_time), state, commit_every_ms=commit_every_ms))
    worlds[0].load(*NUMBERS)
    return worlds[0]


NUMBERS = [str(number) for number in range(20)]


def test_a_commit_comes_in_the_middle_of_a_batch_that_is_slow(tmp_path: Path) -> None:
    world = slow_world(tmp_path, commit_every_ms=250)
    world.run_until(world.consumed)
    assert offsets_sent(world) == [10, 13, 16, 19, 20]
    assert values(world) == NUMBERS


def test_a_stop_is_seen_in_the_middle_of_a_batch_and_the_rest_is_for_the_next_run(
    tmp_path: Path,
) -> None:
    world = slow_world(tmp_path, commit_every_ms=250)
    world.run_until(lambda: world.loop.counters.records >= 14)
    assert offsets_sent(world)[-1] == 14
    assert values(world) == NUMBERS[:14]


def test_records_that_wait_stay_through_a_rebalance(tmp_path: Path) -> None:
    world = slow_world(tmp_path, commit_every_ms=250)

    def rebalanced() -> bool:
        if world.loop.counters.records == 14 and len(world.member.subscribed) == 1:
            world.member.signalled = MembershipSignal.REBALANCE
        return world.consumed()

    world.run_until(rebalanced)
    assert world.member.subscribed == [(), ("0_0",)]
    assert values(world) == NUMBERS


def test_records_that_wait_go_with_a_task_that_goes(tmp_path: Path) -> None:
    world = slow_world(tmp_path, commit_every_ms=250)

    def gone_and_back() -> bool:
        joined = len(world.member.subscribed)
        if world.loop.counters.records == 14 and joined == 1:
            world.member.signalled = MembershipSignal.REBALANCE
            world.member.assign(AssignmentInfo((), ()))
        elif joined == 2 and not world.loop.tasks:
            world.member.signalled = MembershipSignal.REBALANCE
            world.member.assign(assign_partitions(0))
        return world.consumed()

    world.run_until(gone_and_back)
    assert len(world.member.subscribed) == 3
    assert values(world) == NUMBERS


@pytest.mark.parametrize("error", [OutcomeUnknown("?"), TaskMigrated("!")])
@pytest.mark.parametrize("after", [False, True])
def test_records_that_wait_are_read_again_after_a_rollback_and_counted_once(
    tmp_path: Path, error: Exception, after: bool
) -> None:
    world = slow_world(tmp_path, commit_every_ms=250)
    world.script.fail("producer.commit_transaction", error, at=2, after=after)
    world.run_until(world.consumed)
    assert values(world) == NUMBERS
    assert world.script.list_unmade_failures() == []


# Order


def two_topics(state: Path, **settings: Any) -> World:
    topics = {"left": 1, "right": 1, "out-right": 1}
    topology = processing(topics=["left", "right"])
    world = World(topology, state, topics=topics, **settings)
    world.member.assign(AssignmentInfo(("0_0",), (("left", 0), ("right", 0))))
    return world


def load_times(world: World, partition: Partition, *times_ms: int) -> None:
    for time_ms in times_ms:
        value = f"{partition.topic}@{time_ms}".encode()
        world.kafka.append_record(partition, b"k", value, time_ms)


def all_committed(world: World, *partitions: Partition) -> bool:
    committed = world.kafka.committed_offsets
    return all(
        p in committed and committed[p].offset == world.kafka.logs[p].high_watermark
        for p in partitions
    )


def test_records_of_a_tasks_partitions_go_by_their_time(tmp_path: Path) -> None:
    world = two_topics(tmp_path)
    load_times(world, LEFT, 10, 40, 50)
    load_times(world, RIGHT, 20, 30, 60)
    world.run_until(lambda: all_committed(world, LEFT, RIGHT))
    produced = [value for _, _, value in world.producers[0].produced if value is not None]
    times = [int(value.decode().partition("@")[2]) for value in produced if b"@" in value]
    assert times == sorted(times)
    assert len(times) == 6


def test_what_is_committed_while_records_wait_is_the_first_of_them(tmp_path: Path) -> None:
    world = two_topics(tmp_path, max_task_idle_ms=3_600_000)
    load_times(world, LEFT, 10, 40, 50)
    load_times(world, RIGHT, 20)
    world.run_until(lambda: RIGHT in world.kafka.committed_offsets)
    assert (
        world.kafka.committed_offsets[LEFT].offset,
        world.kafka.committed_offsets[RIGHT].offset,
    ) == (1, 1)
    metadata = [decode_metadata(world.kafka.committed_offsets[p].metadata) for p in (LEFT, RIGHT)]
    assert [each.partition_time_ms for each in metadata] == [10, 20]


def test_records_in_queues_are_dropped_by_a_rollback_and_read_again(tmp_path: Path) -> None:
    world = two_topics(tmp_path, max_task_idle_ms=200)
    load_times(world, LEFT, 10, 40, 50)
    load_times(world, RIGHT, 20)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), after=True)
    world.run_until(lambda: all_committed(world, LEFT, RIGHT))
    assert values(world) == ["left@10", "left@40", "left@50"]


def test_a_paused_partition_goes_on_when_its_task_begins_again(tmp_path: Path) -> None:
    world = two_topics(tmp_path, max_task_idle_ms=500)
    load_times(world, LEFT, *range(100))
    load_times(world, RIGHT, 3)
    world.script.fail("producer.flush", OutcomeUnknown("?"))
    world.run_until(lambda: all_committed(world, LEFT, RIGHT))
    assert len(values(world)) == 100


# Time and punctuation


def test_stream_time_goes_on_after_a_restart(tmp_path: Path) -> None:
    seen: list[int] = []
    topology = processing(process=lambda context, record: seen.append(context.stream_time_ms))
    world = World(topology, tmp_path)
    load_times(world, INPUT, 10, 500, 20)
    world.run_until(world.consumed)
    assert seen == [10, 500, 500]
    metadata = decode_metadata(world.kafka.committed_offsets[INPUT].metadata)
    assert metadata.partition_time_ms == 500
    second = World(topology, tmp_path / "second", kafka=world.kafka)
    load_times(second, INPUT, 30, 600)
    second.run_until(second.consumed)
    assert seen[3:] == [500, 600]


def test_after_a_restart_stream_time_punctuates_without_waiting_for_a_record(
    tmp_path: Path,
) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    load_times(world, INPUT, 700)
    world.run_until(world.consumed)
    called: list[int] = []
    topology = processing(init=lambda context: context.schedule(100, called.append))
    again = World(topology, tmp_path / "again", kafka=world.kafka)
    again.run_until(lambda: bool(called))
    assert called == [700]


def test_a_record_with_a_negative_timestamp_fails_and_is_named(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    load_times(world, INPUT, 5, -1, 6)
    with pytest.raises(StreamsError, match=r"can't take in\[0\]@1: its timestamp is -1"):
        world.run_until(world.consumed)


def test_a_record_with_a_negative_timestamp_can_be_skipped(tmp_path: Path) -> None:
    world = World(
        build_mapping_topology(str.upper),
        tmp_path,
        handlers=ExceptionHandlers(deserialization="skip"),
    )
    load_times(world, INPUT, 5, -1, 6)
    world.run_until(world.consumed)
    assert values(world) == ["IN@5", "IN@6"]
    assert world.loop.counters.dropped == 1
    assert world.loop.measurements.timings_by_task["0_0"].dropped_total == 1


def test_stream_time_punctuates_right_after_the_record_that_makes_it_due(tmp_path: Path) -> None:
    events: list[Any] = []
    topology = processing(
        init=lambda context: context.schedule(100, events.append, clock="stream"),
        process=lambda context, record: events.append(record.value),
    )
    world = World(topology, tmp_path)
    load_times(world, INPUT, 10, 50, 120, 130, 450, 460, 500)
    world.run_until(world.consumed)
    # The first as soon as there is a time; then by the hundred; a leap of several is one call.
    assert [event if isinstance(event, int) else event[3:] for event in events] == [
        *["10", 10, "50", "120", 120, "130", "450", 450, "460", "500", 500],
    ]
    assert world.loop.counters.punctuations == 4


def test_the_wall_clock_punctuates_without_records_and_keeps_to_its_times(tmp_path: Path) -> None:
    called: list[int] = []
    world = World(
        processing(init=lambda context: context.schedule(1_000, called.append, clock="wall")),
        tmp_path,
    )
    began_ms = round(world.clock.elapsed_s * 1_000)
    world.run_until(lambda: len(called) == 3)
    assert [round((at_ms - began_ms) / 1_000) for at_ms in called] == [1, 2, 3]


def test_a_punctuation_that_is_always_due_does_not_keep_records_away(tmp_path: Path) -> None:
    worlds: list[World] = []

    def take_time(now_ms: int) -> None:
        world = worlds[0]
        world.clock.advance_monotonic_clock(0.005)
        if world.loop.counters.punctuations == 3:
            world.load(*NUMBERS)

    topology = processing(init=lambda context: context.schedule(1, take_time, clock="wall"))
    worlds.append(World(topology, tmp_path, commit_every_ms=100))
    worlds[0].run_until(lambda: worlds[0].loop.counters.records == 20)
    assert values(worlds[0]) == NUMBERS


def put_time(context: ProcessorContext[str, str]) -> Callable[[int], None]:
    return lambda now_ms: context.store("c").put("time", str(now_ms), now_ms)


def punctuating(state: Path) -> World:
    """Return a world without input whose task writes into its store each second of wall time."""
    return World(
        processing(init=lambda context: context.schedule(1_000, put_time(context), clock="wall")),
        state,
    )


def test_a_transaction_of_punctuations_alone_sends_the_offsets_again(tmp_path: Path) -> None:
    world = punctuating(tmp_path)
    world.run_until(lambda: world.loop.counters.commits == 2)
    sent = [dict(each) for producer in world.producers for each in producer.sent]
    assert [list(offsets) for offsets in sent] == [[INPUT], [INPUT]]
    assert offsets_sent(world) == [0, 0]
    positions = [decode_metadata(each[INPUT].metadata).position_of_store("c") for each in sent]
    assert positions == [1, 3], "with the changelog's new position: a marker lies in between"


def test_the_number_of_the_commit_tells_them_apart_and_grows_over_a_restart(tmp_path: Path) -> None:
    world = punctuating(tmp_path)
    world.run_until(lambda: world.loop.counters.commits == 2)
    first, second = numbers_sent(world)
    assert 0 < first < second
    again = World(processing(), tmp_path / "again", kafka=world.kafka)
    assert again.clock() * 1_000 < second - 100, "its clock is behind"
    load_times(again, INPUT, 5)
    again.run_until(again.consumed)
    assert numbers_sent(again) == [second + 1]


def test_the_number_of_the_commit_grows_over_commits_of_a_release_that_writes_none(
    tmp_path: Path,
) -> None:
    world = punctuating(tmp_path)
    world.run_until(lambda: world.loop.counters.commits == 2)
    held = world.kafka.committed_offsets[INPUT]
    said = decode_metadata(held.metadata)
    position = said.position_of_store("c")
    assert position is not None
    earlier = encode_metadata({"c": position}, said.partition_time_ms)
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(held.offset, earlier)
    later = World(processing(), tmp_path / "later", kafka=world.kafka)
    later.clock.advance_monotonic_clock(world.clock() + 1.0)
    load_times(later, INPUT, 5)
    later.run_until(later.consumed)
    assert numbers_sent(later) > numbers_sent(world)[-1:]


@pytest.mark.parametrize(("limit", "numbered"), [(47, False), (48, True)])
def test_a_commit_has_a_number_if_the_brokers_take_it(
    tmp_path: Path, limit: int, numbered: bool
) -> None:
    world = World(processing(), tmp_path, metadata_bytes_max=limit)
    load_times(world, INPUT, 5)
    world.run_until(world.consumed)
    (metadata,) = {each[INPUT].metadata for p in world.producers for each in map(dict, p.sent)}
    assert len(metadata) + 1 <= limit
    assert bool(numbers_sent(world)) is numbered


def test_a_zombie_that_has_only_punctuated_is_fenced_by_its_offsets(tmp_path: Path) -> None:
    """Test that a zombie without input is fenced: the group refuses its offsets' generation.

    Nothing else would stop it.
    """
    world = punctuating(tmp_path)

    world.kafka.generations_over = 1
    world.run_until(lambda: world.loop.counters.commits == 1)
    assert world.loop.counters.tasks_migrated == 1
    assert len(list(world.kafka.logs[Partition("a-c-changelog", 0)].read_committed(0))) == 1


def test_an_error_in_a_punctuation_says_where_it_was(tmp_path: Path) -> None:
    def fail(now_ms: int) -> None:
        raise ZeroDivisionError(now_ms)

    world = World(
        processing(init=lambda context: context.schedule(100, fail, clock="wall")), tmp_path
    )
    with pytest.raises(StreamsError, match=r"a punctuation.*ZeroDivisionError"):
        world.run_until(lambda: False)


def test_punctuations_begin_anew_after_a_rollback(tmp_path: Path) -> None:
    called: list[int] = []
    world = World(
        processing(init=lambda context: context.schedule(100, called.append, clock="stream")),
        tmp_path,
    )
    load_times(world, INPUT, 10, 20)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"))
    world.run_until(world.consumed)
    assert called == [10, 10]


# Early commits


def test_a_processor_that_asks_for_a_commit_gets_it_before_the_interval_is_over(
    tmp_path: Path,
) -> None:
    topology = processing(
        process=lambda context, record: context.commit() if record.offset == 12 else None
    )
    world = World(topology, tmp_path, commit_every_ms=3_600_000)
    world.load(*map(str, range(30)))
    world.run_until(lambda: world.loop.counters.records == 30)
    assert offsets_sent(world) == [20, 30], "after the slice that asked, and at the stop"
    assert world.loop.counters.early_commits == 1


def test_a_commit_comes_early_when_uncommitted_writes_take_too_much_memory(tmp_path: Path) -> None:
    topology = processing(
        process=lambda context, record: context.store("c").put(str(record.offset), record.value, 0)
    )
    world = World(topology, tmp_path, commit_every_ms=3_600_000, uncommitted_bytes_max=5_000)
    world.load(*["v" * 100] * 100)
    world.run_until(lambda: world.loop.counters.records == 100)
    assert world.loop.counters.early_commits >= 2
    assert all(later - earlier <= 50 for earlier, later in pairwise([0, *offsets_sent(world)]))


# Corrupt stores


def test_damage_that_a_users_function_has_caught_is_not_committed_over(tmp_path: Path) -> None:
    class Sums(Processor[str, str, str, int]):
        """Counts from 0 again when a read fails, which is a mistake, but a common one."""

        stores: ClassVar[Sequence[str | Store]] = [
            Store.persistent("c", key=serdes.string, value=serdes.int64)
        ]

        def process(self, record: Record[str, str]) -> None:
            store = self.context.store("c")
            if record.value == "20" and damage:
                disk = world.loop.tasks["0_0"].stores.logged["c"].disk
                disk._disk._get = damage.pop()  # type: ignore[union-attr]
            try:
                sum_ = store.get(record.value) or store.get(record.key) or 0
            except Exception:
                sum_ = 0
            store.put(record.key, sum_ + 1)
            self.context.forward(Record(record.key, sum_ + 1, record.timestamp_ms))

    def bad_block(key: bytes) -> bytes | None:
        raise Exception("Corruption: block checksum mismatch")

    damage = [bad_block]
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.process(Sums, key=serdes.string, value=serdes.int64).to("out")
    world = World(app.topology(), tmp_path)
    world.load(*map(str, range(30)))
    world.run_until(world.consumed)
    assert world.read_counts() == {"k": list(range(1, 31))}
    assert world.loop.counters.tasks_corrupted == 1


def test_a_store_that_can_not_be_read_is_rebuilt_and_nothing_is_lost(tmp_path: Path) -> None:
    broken: list[str] = ["once"]

    def fail_once(counted: int) -> int:
        if counted == 20 and broken:
            raise StoreCorrupted("c", tmp_path, broken.pop())
        return counted

    world = World(build_counting_topology(then=fail_once), tmp_path)
    world.load(*map(str, range(30)))
    world.run_until(world.consumed)
    assert world.read_counts() == {"k": [10, 20, 30]}
    assert world.loop.counters.tasks_corrupted == 1
    assert world.loop.counters.restored_records == 1


@pytest.mark.parametrize(
    ("record_s", "committed_together"),
    [
        # What all tasks have polled is committed together, a little after the deadline.
        pytest.param(0.015, [4, 4], id="quick"),
        # Not for longer than a twentieth of a second: then it is committed between two slices.
        pytest.param(0.06, [4, 1, 3], id="slow"),
    ],
)
def test_a_due_commit_waits_for_the_other_tasks_where_that_takes_little_time(
    tmp_path: Path, record_s: float, committed_together: list[int]
) -> None:
    worlds: list[World] = []

    def take_time(value: str) -> str:
        worlds[0].clock.advance_monotonic_clock(record_s)
        return value

    topology = build_mapping_topology(take_time)
    world = World(topology, tmp_path, partitions=4, commit_every_ms=1_000)
    worlds.append(world)

    def load_to_be_polled_at_the_deadline() -> bool:
        assigned = len(world.consumer.assigned) == 4
        commits = world.loop.counters.commits
        if assigned and world.loop.counters.records == 4 * commits and commits < 2:
            for partition in range(4):
                world.load(str(commits), partition=partition)
            if commits:
                world.clock.advance_monotonic_clock(0.999)
        return world.loop.counters.records == 8 and world.loop.counters.commits >= 2

    world.run_until(load_to_be_polled_at_the_deadline)
    assert records_by_commit(world) == committed_together


def records_by_commit(world: World) -> list[int]:
    """Return how many records each commit has taken."""
    ends = dict.fromkeys((Partition("in", each) for each in range(4)), 0)
    counts = []
    for producer in world.producers:
        for offsets in producer.sent:
            sent = {partition: each.offset for partition, each in offsets}
            counts.append(sum(sent.values()) - sum(ends[each] for each in sent))
            ends |= sent
    return counts
