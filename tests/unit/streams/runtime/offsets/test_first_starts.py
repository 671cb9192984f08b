"""Test that `latest` and durations skip what came before a first start, and nothing after it.

Each record has its offset as its timestamp.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.offsets.offset_metadata import FirstStart, decode_metadata, encode_metadata
from streams.testing.cluster import InMemoryTransaction
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import (
    World,
    assign_partitions,
    build_counting_topology,
    build_mapping_topology,
)

FIRST, SECOND, THIRD = (Partition("in", number) for number in range(3))
TOPICS = {"in": 2, "out": 1}


def latest(state: Path, kafka: Kafka, policy: str = "latest", **given: object) -> World:
    """Return a worker that writes its input in capitals, and begins as the policy says."""
    topology = build_mapping_topology(str.upper)
    return World(
        topology,
        state,
        partitions=kafka.partition_counts["in"],
        kafka=kafka,
        auto_offset_reset=policy,
        **given,  # type: ignore[arg-type]
    )


def commit(kafka: Kafka, partition: Partition, offset: int, first: FirstStart | None) -> None:
    """Commit an offset as a worker does whose group had this first start."""
    kafka.committed_offsets[partition] = OffsetAndMetadata(
        offset, encode_metadata({}, first_start=first)
    )


def written(kafka: Kafka) -> list[bytes]:
    return sorted(value or b"" for _, value in kafka.committed("out"))


def told_first_start(kafka: Kafka, partition: Partition) -> FirstStart | None:
    return decode_metadata(kafka.committed_offsets[partition].metadata).first_start


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_all_partitions_of_a_first_start_begin_at_their_ends(
    tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = Kafka(TOPICS)
    kafka.load(SECOND, ("k", "before"))
    world = latest(tmp_path, kafka, guarantee=guarantee)
    caplog.set_level("INFO")
    world.turn()
    kafka.load(SECOND, ("k", "after"))
    world.turn()
    assert written(kafka) == [b"AFTER"]
    assert told_first_start(kafka, SECOND) == FirstStart(1_000_000, 2, offset=1)
    assert "nothing is committed for in[1]: it begins at 1, as the policy says" in caplog.text
    told = {
        r.levelname: r.getMessage() for r in caplog.records if "as the policy" in r.getMessage()
    }
    assert "in[0]" in told["INFO"]  # nothing of it is skipped
    assert "what it holds from 0 on is skipped. If topic 'in' was deleted" in told["WARNING"]


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
@pytest.mark.parametrize("policy", ["latest", "by_duration:PT1S"])
def test_a_partition_that_is_added_is_read_from_its_beginning(
    tmp_path: Path, is_running: bool, policy: str
) -> None:
    kafka = Kafka(TOPICS)
    world = latest(tmp_path / "first", kafka, policy)
    world.turn()
    kafka.grow("in", 3)
    kafka.load(THIRD, ("k", "a"), ("k", "b"))
    if is_running:
        world.rebalance(assign_partitions(0, 1, 2))
    else:
        world.loop.close()
        world = latest(tmp_path / "second", kafka, policy)
    world.turn()
    assert written(kafka) == [b"A", b"B"]


def test_a_partition_that_is_added_and_has_lost_records_is_out_of_range(tmp_path: Path) -> None:
    kafka = Kafka({**TOPICS, "in": 3})
    kafka.load(THIRD, ("k", "a"), ("k", "b"))
    kafka.logs[THIRD].start_offset = 1
    commit(kafka, FIRST, 0, FirstStart(5, 2))
    commit(kafka, SECOND, 0, FirstStart(5, 2))
    with pytest.raises(
        StreamsError, match=r"offset 0 of in\[2\] is outside of what is there, 1 to 2"
    ):
        latest(tmp_path / "first", kafka).turn()
    world = latest(tmp_path / "second", kafka, offset_out_of_range="earliest")
    world.turn()
    assert written(kafka) == [b"B"]
    assert world.loop.counters.records_out_of_range == 1


def test_commits_pass_on_how_many_partitions_there_were_and_never_raise_it(tmp_path: Path) -> None:
    kafka = Kafka(TOPICS)
    for number, policy in enumerate(["latest", "earliest", "latest"]):
        world = latest(tmp_path / str(number), kafka, policy)
        world.turn()
        for partition in kafka.partitions_of("in"):
            kafka.load(partition, ("k", "v"))
        world.turn()
        world.loop.close()
        kafka.grow("in", 3 + number)
    assert told_first_start(kafka, FIRST) == FirstStart(1_000_000, 2)


def test_the_first_start_of_a_partition_that_was_added_is_that_of_its_topic(tmp_path: Path) -> None:
    kafka = Kafka({**TOPICS, "in": 3})
    first = FirstStart(500, 2)
    commit(kafka, FIRST, 0, first)
    commit(kafka, SECOND, 0, first)
    latest(tmp_path, kafka).turn()
    assert told_first_start(kafka, THIRD) == first


def test_a_worker_that_starts_later_begins_where_it_would_have_begun_with_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = Kafka(TOPICS)
    kafka.load(SECOND, *(("k", f"{n}") for n in range(5)))
    commit(kafka, FIRST, 0, FirstStart(3, 2))
    latest(tmp_path, kafka).turn()
    assert written(kafka) == [b"3", b"4"]
    assert "the first record since the group began to read other partitions" in caplog.text


def test_a_duration_counts_from_the_first_start(tmp_path: Path) -> None:
    kafka = Kafka(TOPICS)
    kafka.load(SECOND, *(("k", f"{n}") for n in range(5)))
    commit(kafka, FIRST, 0, FirstStart(3, 2))
    latest(tmp_path, kafka, "by_duration:2").turn()
    assert written(kafka) == [b"1", b"2", b"3", b"4"]


def test_of_two_workers_that_started_at_once_the_lower_number_of_partitions_counts(
    tmp_path: Path,
) -> None:
    kafka = Kafka({**TOPICS, "in": 3})
    kafka.load(THIRD, ("k", "a"))
    commit(kafka, FIRST, 0, FirstStart(700, 2))
    commit(kafka, SECOND, 0, FirstStart(600, 3))
    latest(tmp_path, kafka).turn()
    assert written(kafka) == [b"A"]
    assert told_first_start(kafka, THIRD) == FirstStart(600, 2)


def test_a_partition_that_is_added_before_the_first_commit_is_read_from_its_beginning(
    tmp_path: Path,
) -> None:
    kafka = Kafka(TOPICS)
    world = latest(tmp_path, kafka)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"))
    while world.script.list_unmade_failures():
        world.loop.run_once()
    assert not kafka.committed_offsets
    kafka.grow("in", 3)
    kafka.load(THIRD, ("k", "a"))
    world.rebalance(assign_partitions(0, 1, 2))
    world.turn()
    assert written(kafka) == [b"A"]


def test_the_first_commit_of_another_worker_is_waited_for(tmp_path: Path) -> None:
    kafka = Kafka({**TOPICS, "in": 3})
    kafka.load(THIRD, ("k", "a"))
    first = OffsetAndMetadata(0, encode_metadata({}, first_start=FirstStart(5, 2)))
    transaction = InMemoryTransaction()
    transaction.offsets[FIRST] = first
    kafka.open_transactions["another"] = transaction
    world = latest(tmp_path, kafka)
    world.member.assign(assign_partitions(2))
    world.turn()
    assert THIRD not in kafka.committed_offsets
    del kafka.open_transactions["another"]
    kafka.committed_offsets[FIRST] = first
    world.clock.elapsed_s += 1
    world.turn()
    assert written(kafka) == [b"A"]


def test_offsets_that_do_not_tell_of_the_first_start_skip_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = Kafka(TOPICS)
    kafka.load(SECOND, ("k", "a"))
    commit(kafka, FIRST, 0, None)
    latest(tmp_path, kafka).turn()
    assert written(kafka) == [b"A"]
    assert "the offsets of other partitions of its topic don't tell if it is new" in caplog.text


def test_an_input_that_is_added_begins_as_the_policy_says(tmp_path: Path) -> None:
    kafka = Kafka({**TOPICS, "former": 1})
    kafka.load(SECOND, ("k", "a"))
    commit(kafka, Partition("former", 0), 3, FirstStart(5, 1))
    latest(tmp_path, kafka).turn()
    assert written(kafka) == []
    assert told_first_start(kafka, SECOND) == FirstStart(1_000_000, 2, offset=1)


def test_where_all_records_are_read_nothing_is_looked_up(tmp_path: Path) -> None:
    kafka = Kafka(TOPICS)
    kafka.load(SECOND, ("k", "a"))
    world = latest(tmp_path, kafka, "earliest")
    world.turn()
    assert told_first_start(kafka, SECOND) is None
    assert not world.script.filter_calls("admin.fetch_partition_counts")


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_an_offset_that_is_gone_while_the_worker_runs_is_refused(
    tmp_path: Path, policy: str
) -> None:
    kafka = Kafka(TOPICS)
    world = latest(tmp_path, kafka, policy)
    world.turn()
    kafka.load(SECOND, ("k", "a"), ("k", "b"))
    world.turn()
    kafka.committed_offsets.clear()
    world.rebalance(assign_partitions())
    world.turn()
    world.rebalance(assign_partitions(0, 1))
    with pytest.raises(StreamsError, match=r"no committed offset any more for .*2 of in\[1\]"):
        world.turn()
    assert written(kafka) == [b"A", b"B"]


def test_a_partition_is_not_read_again_whose_topic_has_lost_all_offsets(tmp_path: Path) -> None:
    kafka = Kafka(TOPICS)
    world = latest(tmp_path, kafka)
    world.member.assign(assign_partitions(0))
    world.turn()
    kafka.load(SECOND, ("k", "a"))
    kafka.committed_offsets.clear()
    world.rebalance(assign_partitions(1))
    with pytest.raises(StreamsError, match=r"no committed offset any more for in\[0\]"):
        world.turn()
    assert written(kafka) == []


def test_offsets_that_go_with_a_topic_that_is_made_again_are_told_as_that(tmp_path: Path) -> None:
    kafka = Kafka(TOPICS)
    world = latest(tmp_path, kafka)
    world.turn()
    kafka.committed_offsets.clear()
    kafka.topic_ids["in"] = "another"
    world.rebalance(assign_partitions())
    world.turn()
    world.rebalance(assign_partitions(0, 1))
    with pytest.raises(StreamsError, match="another topic of the same name"):
        world.turn()


def test_a_partition_more_of_a_topic_that_was_made_again_goes_by_the_same_setting(
    tmp_path: Path,
) -> None:
    kafka = Kafka({**TOPICS, "in": 3})
    kafka.load(THIRD, ("k", "a"))
    metadata = encode_metadata({}, topic_ids={"in": 1}, first_start=FirstStart(5, 2))
    for partition in (FIRST, SECOND):
        kafka.committed_offsets[partition] = OffsetAndMetadata(0, metadata)
    latest(tmp_path, kafka, offset_out_of_range="earliest").turn()
    assert written(kafka) == [b"A"]
    assert told_first_start(kafka, FIRST) is None


def test_at_least_once_the_first_offsets_tell_of_the_first_start_already(tmp_path: Path) -> None:
    world = World(
        build_counting_topology(),
        tmp_path,
        guarantee="at_least_once",
        auto_offset_reset="latest",
    )
    world.turn(1)
    told = [told_first_start(world.kafka, FIRST)]
    world.load("a")
    world.turn()
    told.append(told_first_start(world.kafka, FIRST))
    assert told == [FirstStart(1_000_000, 1)] * 2
