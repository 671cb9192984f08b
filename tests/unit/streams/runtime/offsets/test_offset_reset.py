"""Test that offsets out of range follow a policy and are never silent.

Internal topics have no such policy: there they are an error.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.offsets.offset_metadata import OffsetMetadata, decode_metadata, encode_metadata
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.settings.offset_reset import InitialPolicies, parse_reset_policy
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import World, build_mapping_topology

INPUT = Partition("in", 0)
INTERNAL = Partition("a-c-repartition", 0)
OTHER_INPUT = INPUT._replace(number=1)


def resetting(policy: str) -> OffsetResetter:
    """Return a resetter of a topic `in` with offsets 10 to 20, each of which is its timestamp.

    The clock is at 1 000 000 ms.
    """
    kafka = Kafka({"in": 2, INTERNAL.topic: 1})
    for partition in (INPUT, OTHER_INPUT):
        kafka.load(partition, *[("k", "v")] * 20)
        kafka.logs[partition].start_offset = 10
    return OffsetResetter(
        FakeAdmin(kafka, Script()),
        Clock(),
        initial_policies=InitialPolicies(parse_reset_policy("earliest", stop_word="none")),
        offset_out_of_range=policy,
        internal_topics={INTERNAL.topic},
    )


@pytest.mark.parametrize("offset", [5, 25])
def test_by_default_the_thread_stops_and_says_what_is_there(offset: int) -> None:
    with pytest.raises(
        StreamsError, match=rf"offset {offset} of in\[0\] is outside of what is there, 10 to 20"
    ):
        resetting("fail").reset_positions({INPUT: offset})


def test_a_range_that_is_gone_may_have_been_aborted_records_and_markers_alone() -> None:
    with pytest.raises(StreamsError) as refused:
        resetting("fail").reset_positions({INPUT: 5})
    for said in (
        "the offsets 5 to 9 were removed before they were read",
        "markers of transactions or aborted records alone",
        "start once with offset_out_of_range=earliest, which goes on at 10 of in[0]",
    ):
        assert said in str(refused.value)
    with pytest.raises(StreamsError, match="was cut, or deleted and created again") as refused:
        resetting("fail").reset_positions({INPUT: 25})
    assert "aborted" not in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "offset", "position", "skipped"),
    [
        ("earliest", 5, 10, 5),
        ("latest", 5, 20, 15),
        ("by_duration:999985", 5, 15, 10),
        ("by_duration:PT1S", 5, 20, 15),
        ("earliest", 25, 10, 0),
        ("latest", 25, 20, 0),
    ],
)
def test_where_it_goes_on_is_logged_and_what_is_skipped_is_counted(
    policy: str, offset: int, position: int, skipped: int, caplog: pytest.LogCaptureFixture
) -> None:
    made = resetting(policy)
    assert made.reset_positions({INPUT: offset}) == {INPUT: position}
    assert (made.offsets_out_of_range, made.records_out_of_range) == (1, skipped)
    said = f"offset {offset} of in[0] is outside of what is there, 10 to 20: it goes on at"
    assert f"{said} {position} (offset_out_of_range={policy.partition(':')[0]})" in caplog.text
    assert (f"{skipped} records are skipped" in caplog.text) is (offset == 5)
    assert ("may be read again" in caplog.text) is (offset == 25)


def test_offsets_out_of_range_that_are_found_together_are_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = resetting("earliest")
    made.reset_positions({INPUT: 5, OTHER_INPUT: 7})
    (told,) = caplog.messages
    assert "offset 5 of in[0]" in told
    assert "offset 7 of in[1]" in told
    assert made.offsets_out_of_range == 2


@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_records_between_two_steps_are_never_skipped(policy: str) -> None:
    with pytest.raises(StreamsError, match="between two steps of this application are lost"):
        resetting(policy).reset_positions({INTERNAL: 7})


def outside(tmp_path: Path, policy: str) -> World:
    """Return a world whose committed offset 1 is below the topic's first offset, 3."""
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range=policy)
    world.load("a", "b", "c", "d", "e")
    world.kafka.logs[INPUT].start_offset = 3
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(1, "")
    return world


def written(world: World) -> list[bytes | None]:
    return [value for _, value in world.kafka.committed("out")]


def test_a_thread_goes_on_where_the_policy_says_and_commits_from_there(tmp_path: Path) -> None:
    world = outside(tmp_path, "earliest")
    world.run_until(world.consumed)
    assert written(world) == [b"D", b"E"]
    assert world.loop.counters.offsets_out_of_range == 1
    assert world.loop.counters.records_out_of_range == 2


def test_a_thread_that_is_to_stop_processes_nothing(tmp_path: Path) -> None:
    world = outside(tmp_path, "fail")
    with pytest.raises(StreamsError, match="offset_out_of_range=fail"):
        world.run_until(world.consumed)
    assert written(world) == []


def test_a_topic_that_is_cut_while_it_is_read_goes_by_the_policy_too(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="earliest")
    world.load("a", "b")

    def cut() -> bool:
        log = world.kafka.logs[INPUT]
        if world.consumed() and log.high_watermark == 2:
            world.load("c", "d", "e")
            world.kafka.logs[INPUT].start_offset = 4
        return log.high_watermark == 5 and world.consumed()

    world.run_until(cut)
    assert written(world) == [b"A", b"B", b"E"]
    assert world.loop.counters.records_out_of_range == 2


def test_a_broker_that_is_away_just_then_is_asked_again(tmp_path: Path) -> None:
    world = outside(tmp_path, "earliest")
    world.script.fail("admin.fetch_earliest_offsets", OutcomeUnknown("no answer"), at=2)
    world.run_until(world.consumed)
    assert written(world) == [b"D", b"E"]
    assert world.loop.counters.records_out_of_range == 2


def test_a_member_that_finds_deleted_what_the_new_owner_has_read_joins_again(
    tmp_path: Path,
) -> None:
    """Test that a cut-off member joins again when its old task's input was read and deleted.

    Its tasks have moved, and no heartbeat could tell it.
    """
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="fail")
    world.load("a", "b")

    def moved() -> bool:
        if world.consumed() and world.kafka.logs[INPUT].high_watermark == 2:
            world.load("c", "d", "e")
            world.kafka.logs[INPUT].start_offset = 4
            world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(4, "")
        return world.kafka.logs[INPUT].high_watermark == 5 and world.consumed()

    world.run_until(moved)
    assert written(world) == [b"A", b"B", b"E"]
    assert world.loop.counters.tasks_migrated == 1
    assert world.loop.counters.offsets_out_of_range == 0


@pytest.mark.parametrize("policy", ["latest", "by_duration:PT1S"])
def test_what_a_rollback_takes_back_before_the_first_commit_is_not_skipped(
    tmp_path: Path, policy: str
) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, auto_offset_reset=policy)
    world.load("before")
    world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"))

    def begun() -> bool:
        if world.consumer.assigned and world.kafka.logs[INPUT].high_watermark == 1:
            world.load("a", "b")
        return world.consumed()

    world.run_until(begun)
    assert world.script.list_unmade_failures() == []
    assert written(world) == [b"A", b"B"]


def with_former_input(tmp_path: Path, policy: str) -> World:
    """Return a world whose committed offset 2 is of a topic `in` before; the new one has 5."""
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range=policy)
    world.load("a", "b", "c", "d", "e")
    former = encode_metadata({}, topic_ids={"in": 1})
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(2, former)
    return world


def test_a_topic_made_again_is_refused_although_the_offset_is_in_its_range(tmp_path: Path) -> None:
    world = with_former_input(tmp_path, "fail")
    refusal = r"in\[0\] is of another topic of the same name than its committed offset 2: .*=fail"
    with pytest.raises(StreamsError, match=refusal):
        world.run_until(world.consumed)
    assert written(world) == []
    assert world.kafka.committed_offsets[INPUT].offset == 2


@pytest.mark.parametrize(
    ("policy", "values"), [("earliest", [b"A", b"B", b"C", b"D", b"E", b"F"]), ("latest", [b"F"])]
)
def test_a_topic_made_again_is_read_from_where_the_policy_says(
    tmp_path: Path, policy: str, values: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    world = with_former_input(tmp_path, policy)
    world.turn()
    world.load("f")
    world.run_until(world.consumed)
    assert written(world) == values
    assert world.loop.counters.offsets_out_of_range == 1
    assert "another topic of the same name than its committed offset 2" in caplog.text
    said = decode_metadata(world.kafka.committed_offsets[INPUT].metadata)
    assert said.topic_id_hash("in") == hash_topic_id(world.kafka.topic_ids["in"])


@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_a_repartition_topic_made_again_is_always_refused(policy: str) -> None:
    with pytest.raises(StreamsError, match="between two steps of this application are lost"):
        resetting(policy).reset_offsets_in_recreated_topics({INTERNAL: 7})


def test_an_offset_that_names_no_id_is_taken_as_it_is(tmp_path: Path) -> None:
    world = with_former_input(tmp_path, "fail")
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(2, encode_metadata({}))
    world.run_until(world.consumed)
    assert written(world) == [b"C", b"D", b"E"]


def test_a_broker_without_topic_ids_has_nothing_compared(tmp_path: Path) -> None:
    world = with_former_input(tmp_path, "fail")
    world.kafka.topic_ids["in"] = "A" * 22
    world.run_until(world.consumed)
    assert written(world) == [b"C", b"D", b"E"]
    said = decode_metadata(world.kafka.committed_offsets[INPUT].metadata)
    assert said.topic_id_hash("in") is None


def make_again(world: World, *values: str) -> None:
    """Delete topic `in` and create it again, with these records."""
    log = world.kafka.logs[INPUT]
    world.kafka.logs[INPUT] = type(log)()
    world.kafka.topic_ids["in"] = "another"
    world.load(*values)


def test_a_topic_made_again_while_it_is_read_is_refused(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="fail")
    world.load("a", "b")
    world.turn()
    make_again(world, "c", "d", "e")
    with pytest.raises(StreamsError, match="another topic of the same name than its committed"):
        world.run_until(lambda: False)


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_nothing_is_processed_of_a_topic_that_the_consumer_sees_made_again(
    tmp_path: Path, policy: str
) -> None:
    """Test that what was polled from the new topic is dropped before an interval has passed."""
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range=policy)
    world.load("a", "b")
    world.turn()
    make_again(world, "c", "d", "e")
    world.consumer.seen_topic_ids = {"in": "another"}
    asked = world.script.filter_calls("admin.fetch_topic_ids")
    with suppress(StreamsError):
        world.loop.run_once()
    assert written(world) == [b"A", b"B"]
    assert world.loop.counters.recoveries == 1
    assert world.script.filter_calls("admin.fetch_topic_ids") == asked, "no broker is asked"
    if policy == "fail":
        with pytest.raises(StreamsError, match="another topic of the same name"):
            world.run_until(lambda: False)
        return
    world.run_until(lambda: world.loop.counters.offsets_out_of_range == 1 and world.consumed())
    assert written(world) == [b"A", b"B", b"C", b"D", b"E"]


def test_the_id_that_an_input_has_had_from_the_start_changes_nothing(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="fail")
    world.load("a", "b")
    world.consumer.seen_topic_ids = {"in": world.kafka.topic_ids["in"], "another": "A" * 22}
    world.run_until(world.consumed)
    assert world.loop.counters.recoveries == 0


def test_a_topic_made_again_with_fewer_records_is_told_as_another_topic(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="earliest")
    world.load("a", "b")
    world.turn()
    make_again(world, "c")
    world.run_until(lambda: world.loop.counters.offsets_out_of_range == 1 and world.consumed())
    assert written(world) == [b"A", b"B", b"C"]


def test_where_no_broker_tells_the_ids_they_are_looked_at_again(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="fail")
    world.load("a", "b")
    world.turn()
    world.script.fail("admin.fetch_topic_ids", OutcomeUnknown("no answer"))
    make_again(world, "c", "d", "e")
    with pytest.raises(StreamsError, match="another topic of the same name than its committed"):
        world.run_until(lambda: False)
    assert world.loop.counters.recoveries == 1


def test_a_topic_made_again_whose_offsets_went_with_it_is_refused_although_it_begins_at_earliest(
    tmp_path: Path,
) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, offset_out_of_range="fail")
    world.load("a", "b")
    world.turn()
    make_again(world, "c", "d", "e")
    del world.kafka.committed_offsets[INPUT]
    world.consumer.seen_topic_ids = {"in": "another"}
    with pytest.raises(StreamsError, match="another topic of the same name"):
        world.run_until(lambda: False)
    assert written(world) == [b"A", b"B"]


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_topic_made_again_whose_offsets_went_with_it_does_not_begin_at_latest(
    tmp_path: Path, policy: str
) -> None:
    world = World(
        build_mapping_topology(str.upper),
        tmp_path,
        auto_offset_reset="latest",
        offset_out_of_range=policy,
    )
    world.turn()
    world.load("a", "b")
    world.turn()
    make_again(world, "c", "d", "e")
    del world.kafka.committed_offsets[INPUT]
    if policy == "fail":
        with pytest.raises(StreamsError, match="another topic of the same name"):
            world.run_until(lambda: False)
        return
    world.run_until(lambda: world.loop.counters.offsets_out_of_range == 1 and world.consumed())
    read_before_the_check = [b"E"]
    assert written(world) == [b"A", b"B", *read_before_the_check, b"C", b"D", b"E"]


ANOTHER = Partition("in", 1)


def committed_with(topic_id: int) -> list[OffsetMetadata]:
    """Return the metadata of another input of the task, which names the id that `in` had."""
    return [decode_metadata(encode_metadata({"c": 1}, topic_ids={"in": topic_id}))]


def test_an_input_whose_offset_went_with_its_topic_is_known_by_the_task_s_other_inputs() -> None:
    refused, going_on = resetting("fail"), resetting("earliest")
    for resetter in (refused, going_on):
        assert resetter.find_and_note_recreated({INPUT: committed_with(2)}, {"in": 2}) == set()
        assert resetter.find_and_note_recreated({INPUT: committed_with(1)}, {}) == set()
        assert resetter.find_and_note_recreated({INPUT: committed_with(1)}, {"in": 2}) == {INPUT}
    with pytest.raises(StreamsError, match="another topic of the same name than the one that was"):
        refused.choose_start_offsets([INPUT], topic_ids={"in": 2})
    assert going_on.choose_start_offsets([INPUT], topic_ids={"in": 2}) == {INPUT: 10}
    assert going_on.find_and_note_recreated({INPUT: []}, {"in": 2}) == {INPUT}, (
        "until it is committed"
    )
    going_on.note_committed([(INPUT, OffsetAndMetadata(10, ""))])
    assert going_on.find_and_note_recreated({INPUT: []}, {"in": 2}) == set()


def test_an_offset_that_is_lost_after_its_topic_was_made_again_is_refused_as_lost() -> None:
    resetter = resetting("earliest")
    resetter.note_topics_made_again({"in"})
    assert resetter.find_and_note_recreated({INPUT: [], ANOTHER: []}, {"in": 2}) == {
        INPUT,
        ANOTHER,
    }
    resetter.note_committed([(INPUT, OffsetAndMetadata(12, ""))])
    assert resetter.find_and_note_recreated({INPUT: []}, {"in": 2}) == set()
    with pytest.raises(StreamsError, match=r"no committed offset any more for in\[0\].*: 12 of in"):
        resetter.choose_start_offsets([INPUT], topic_ids={"in": 2})


def test_the_way_out_of_a_topic_made_again_is_one_that_works_without_its_offset() -> None:
    for offset, offered in ((7, "let offset_out_of_range say"), (None, "")):
        with pytest.raises(StreamsError) as refused:
            resetting("fail").reset_offsets_in_recreated_topics({INPUT: offset})
        text = str(refused.value)
        assert ("let offset_out_of_range say" in text) is bool(offered)
        assert "restore-offsets MODULE:APP --made-again in`" in text
        assert "-1" not in text
