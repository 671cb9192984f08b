"""Test that records of a newer broker are kept and reported, and their keys are not served."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from coordinator.groups.state import GroupCodec
from coordinator.offsets.state import OffsetCommitted, OffsetForgotten
from tests.own_batches import encode_batch
from tests.unit.coordinator.fakes import FakeLog
from tests.unit.coordinator.groups.classic.members import SESSION_MS, FakeMember, stable_group
from tests.unit.coordinator.groups.consumer.golden import GOLDEN, Golden
from tests.unit.coordinator.metrics.test_coordinator_figures import figures
from tests.unit.coordinator.world import World, code_of

FROM_THE_FUTURE = bytes.fromhex("007fdeadbeef")  # version 127
OFFSET_KEY, _ = GroupCodec().encode_record(OffsetForgotten("counts", "words", 0))
GROUP_KEY = bytes.fromhex("00020006") + b"counts"
TRANSACTION_KEY = bytes.fromhex("00000003") + b"app"
SHARE_KEY = bytes.fromhex("000b0006") + b"counts"  # of a share group
PRODUCER_ID = 4_000


def append(log: FakeLog, key: bytes | None, value: bytes | None, producer_id: int = -1) -> None:
    log.append_internal(
        encode_batch(
            [(key, value)],
            timestamp_ms=0,
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            transactional=producer_id >= 0,
        )
    )


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


def test_a_group_of_which_something_is_unreadable_is_neither_read_nor_written(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.commit(7)
    world.commit(8, partition=1)
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
    world.restart()
    end_offset = world.group_log().end_offset
    member = FakeMember(world)
    for request in (world.offset, lambda: world.offset(partition=1), member.join_once):
        assert code_of(request) is Code.COORDINATOR_NOT_AVAILABLE
    assert code_of(world.commit, 9) is Code.COORDINATOR_NOT_AVAILABLE
    assert code_of(world.groups.describe_classic_group, "counts") is Code.COORDINATOR_NOT_AVAILABLE
    assert world.group_log().end_offset == end_offset
    index = world.groups.partition_of("counts")
    [warning] = warnings(caplog)
    assert f"__consumer_offsets-{index}: records of type 1, version 127 of its value: 1" in warning
    assert "the first at offset 2" in warning
    assert figures(world)["millrace_shard_records_unknown_total", f"__consumer_offsets-{index}"]


def test_groups_beside_it_are_served(world: World) -> None:
    same_shard = next(
        f"g{number}"
        for number in range(100)
        if world.groups.partition_of(f"g{number}") == world.groups.partition_of("counts")
    )
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
    world.commit(5, group_id=same_shard)
    world.restart()
    assert world.offset(same_shard) == 5


def test_deleting_the_topic_leaves_the_unreadable_offset_in_the_log(world: World) -> None:
    world.commit(7)
    world.commit(8, partition=1)
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
    world.restart()
    world.forget_topic("words")
    last = {
        each.key: each.value
        for batch in world.group_log().batches()
        for each in batch.iterate_records()
    }
    assert last[OFFSET_KEY or b""] == FROM_THE_FUTURE
    assert list(last.values()).count(None) == 1


def test_members_of_an_unreadable_group_are_left_alone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stable_group(world, FakeMember(world))
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
    world.restart()
    end_offset = world.group_log().end_offset
    world.clock.advance(2 * SESSION_MS)
    assert world.group_log().end_offset == end_offset
    assert len(warnings(caplog)) == 1  # no timer has tried


def test_a_group_record_from_the_future_hides_the_one_before(world: World) -> None:
    stable_group(world, FakeMember(world))
    append(world.group_log(), GROUP_KEY, FROM_THE_FUTURE)
    world.restart()
    assert world.groups.list_groups_unless_loading() == []
    assert code_of(world.offset) is Code.COORDINATOR_NOT_AVAILABLE


VALUED = [golden for golden in GOLDEN if golden.value is not None]


@pytest.mark.parametrize("unreadable", VALUED, ids=lambda golden: type(golden.record).__name__)
def test_a_consumer_group_of_which_something_is_unreadable_waits_with_all_its_members(
    world: World, caplog: pytest.LogCaptureFixture, unreadable: Golden
) -> None:
    for golden in VALUED:
        append(world.group_log(), bytes.fromhex(golden.key), bytes.fromhex(golden.value or ""))
    append(world.group_log(), bytes.fromhex(unreadable.key), FROM_THE_FUTURE)
    world.restart()
    end_offset = world.group_log().end_offset
    assert code_of(world.commit, 9) is Code.COORDINATOR_NOT_AVAILABLE
    assert code_of(world.groups.consumer.describe_group, "counts") is Code.COORDINATOR_NOT_AVAILABLE
    world.clock.advance(3_600_000)
    assert world.group_log().end_offset == end_offset
    assert len(warnings(caplog)) == 1


def test_a_later_record_that_can_be_read_counts_again(world: World) -> None:
    for readable in (OffsetCommitted("counts", "words", 0, 42, -1, "", 0), None):
        append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
        value = None if readable is None else GroupCodec().encode_record(readable)[1]
        append(world.group_log(), OFFSET_KEY, value)
        world.restart()
        assert world.offset() == (-1 if readable is None else 42)


def test_an_unreadable_offset_of_a_transaction_counts_at_once(world: World) -> None:
    """Check that the group waits for the newer broker whether the transaction commits or aborts."""
    world.commit(7)
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE, producer_id=PRODUCER_ID)
    world.restart()
    assert code_of(world.offset) is Code.COORDINATOR_NOT_AVAILABLE


def test_records_of_unknown_kinds_are_reported_and_take_the_name_of_their_group(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.commit(7)
    for _ in range(3):
        append(world.group_log(), SHARE_KEY, b"anything")
    append(world.group_log(), b"\0\x0a" + SHARE_KEY[2:], b"anything")
    world.restart()
    assert world.offset() == 7
    world.commit(8)
    assert code_of(FakeMember(world).join_once) is Code.INCONSISTENT_GROUP_PROTOCOL
    of_metadata, of_members = warnings(caplog)
    assert "records of type 11: 1, the first at offset 3" in of_metadata
    assert "records of type 10: 1, the first at offset 4" in of_members
    index = world.groups.partition_of("counts")
    found = figures(world)
    assert found["millrace_shard_records_unknown_total", f"__consumer_offsets-{index}"] == 4
    for kind in (b"\0\x0b", b"\0\x0a"):
        append(world.group_log(), kind + SHARE_KEY[2:], None)
    world.restart()
    assert code_of(FakeMember(world).join_once) is Code.NONE


def test_offsets_of_a_group_of_an_unknown_kind_stay_whatever_happens(world: World) -> None:
    world.commit(7)
    append(world.group_log(), SHARE_KEY, b"anything")
    world.restart()
    world.clock.advance(8 * 24 * 3_600_000)  # beyond offsets.retention.minutes
    assert code_of(world.delete_group, "counts") is Code.NON_EMPTY_GROUP
    assert world.offset() == 7
    append(world.group_log(), SHARE_KEY, None)
    world.restart()
    assert code_of(world.delete_group, "counts") is Code.NONE
    assert world.offset() == -1


def test_a_transactional_id_that_is_unreadable_is_refused_and_kept(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    owner = world.init()
    world.add(owner)
    [log] = (each for each in world.transaction_logs if each.end_offset)
    append(log, TRANSACTION_KEY, FROM_THE_FUTURE)
    world.restart()
    end_offset = log.end_offset
    assert code_of(world.init) is Code.COORDINATOR_NOT_AVAILABLE
    assert code_of(world.end, owner) is Code.COORDINATOR_NOT_AVAILABLE
    assert code_of(world.transactions.find_transaction, "app") is Code.COORDINATOR_NOT_AVAILABLE
    world.clock.advance(10 * 24 * 3_600_000)
    assert log.end_offset == end_offset
    assert world.init("other").producer_epoch == 0
    assert "type 0, version 127" in warnings(caplog)[0]


def test_an_election_reads_the_log_anew(world: World) -> None:
    append(world.group_log(), OFFSET_KEY, FROM_THE_FUTURE)
    world.restart()
    append(world.group_log(), OFFSET_KEY, None)
    index = world.groups.partition_of("counts")
    world.groups.resign_shard(index)
    while not world.groups.elect_shard(index)():
        pass
    assert world.offset() == -1
    assert world.groups.shards[index].log.counters.unknown == 1
