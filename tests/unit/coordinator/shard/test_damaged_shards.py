"""Test that a damaged shard fails alone with NOT_COORDINATOR, and its log stays unchanged."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from coordinator.errors import Code
from coordinator.groups.state import GroupCodec
from coordinator.offsets.state import OffsetForgotten
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.placement import partition_for
from coordinator.transactions.listing import TransactionFilters
from coordinator.transactions.state import ProducerIdAndEpoch, TransactionStatus
from tests.own_batches import encode_batch
from tests.unit.coordinator.fakes import FakeLog
from tests.unit.coordinator.metrics.test_coordinator_figures import figures
from tests.unit.coordinator.world import World, code_of

DAY_MS = 24 * 3_600_000
OFFSET_KEY, _ = GroupCodec().encode_record(OffsetForgotten("counts", "words", 0))
TRANSACTION_KEY = bytes.fromhex("00000003") + b"app"
ALL = TransactionFilters()


def transaction_log(world: World, transactional_id: str = "app") -> FakeLog:
    return world.transaction_logs[partition_for(transactional_id, 2)]


def elsewhere(name: str, names: Iterable[str] = "abcdef") -> str:
    """Return a name that belongs to another shard."""
    return next(each for each in names if partition_for(each, 2) != partition_for(name, 2))


def damage(log: FakeLog, key: bytes | None, value: bytes | None = b"\0\x04damaged") -> None:
    """Append a record of a known type and version that ends in the middle of a field."""
    log.append_internal(encode_batch([(key, value)], timestamp_ms=0))


def repair(log: FakeLog) -> None:
    """Remove the damaged batch."""
    log.appended = [
        (base, data) for base, data in log.appended if b"damaged" not in data and data[8:]
    ]
    log.damage = None


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("value", [b"", b"\0", struct.pack(">h", 4), struct.pack(">hq", 4, 1)])
def test_a_group_shard_with_a_damaged_record_refuses_and_the_other_serves(
    world: World, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    other = elsewhere("counts")
    world.commit(7)
    world.commit(5, group_id=other)
    log = world.group_log()
    damage(log, OFFSET_KEY, value)
    world.restart()
    [error] = errors(caplog)
    index = world.groups.partition_of("counts")
    assert error.startswith(f"__consumer_offsets-{index} can't be loaded.")
    assert "the record at offset 1 is damaged" in error
    assert "the batch with offset 1" in error
    assert code_of(world.fetch) is Code.NOT_COORDINATOR
    assert code_of(world.commit, 8) is Code.NOT_COORDINATOR
    assert code_of(world.groups.describe_classic_group, "counts") is Code.NOT_COORDINATOR
    assert [group.group_id for group in world.groups.list_groups_unless_loading()] == [other]
    assert world.offset(other) == 5
    world.commit(6, group_id=other)
    assert world.offset(other) == 6


def test_nothing_is_written_to_a_failed_group_shard_whatever_happens(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.commit(7)
    log = world.group_log()
    damage(log, OFFSET_KEY)
    end_offset = log.end_offset
    for _ in range(2):
        world.restart()
        world.forget_topic("words")
        world.clock.advance(30 * DAY_MS)
        assert log.end_offset == end_offset
        assert log.damage is not None
    assert len(caplog.records) == len(errors(caplog)) == 2, "it isn't tried again and again"
    index = world.groups.partition_of("counts")
    world.groups.resign_shard(index)
    assert world.groups.elect_shard(index)()
    assert world.groups.shards[index].log.coordinator_state is CoordinatorState.FAILED
    assert code_of(world.commit, 8) is Code.NOT_COORDINATOR


def test_a_repaired_shard_has_all_but_what_was_damaged(world: World) -> None:
    world.commit(7)
    damage(world.group_log(), OFFSET_KEY)
    world.commit(9, partition=1)
    world.restart()
    repair(world.group_log())
    world.restart()
    assert world.offset() == 7
    assert world.offset(partition=1) == 9
    world.commit(8)
    assert world.offset() == 8


def test_a_failed_transaction_shard_neither_ends_nor_forgets_what_it_had_begun(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    owner = world.init()
    other = elsewhere("app")
    another = world.init(other)
    world.add(owner)
    world.add(another, ("words", 1), id_=other)
    log = transaction_log(world)
    damage(log, TRANSACTION_KEY, b"\0\1\xffdamaged")
    end_offset = log.end_offset
    world.restart()
    assert "the record at offset 2 is damaged" in errors(caplog)[0]
    assert code_of(world.init) is Code.NOT_COORDINATOR
    assert code_of(world.add, owner) is Code.NOT_COORDINATOR
    assert code_of(world.end, owner) is Code.NOT_COORDINATOR
    assert code_of(world.transactions.find_transaction, "app") is Code.NOT_COORDINATOR
    listed = world.transactions.list_transactions(ALL)
    assert [known.transactional_id for known in listed] == [other]
    world.end(another, id_=other)
    assert world.words["words", 1].markers() == [(another.producer_id, 0, True)]
    world.clock.advance(30 * DAY_MS)
    assert world.words["words", 0].markers() == [], "it is still open: nobody knows how it ends"
    assert log.end_offset == end_offset
    repair(log)
    world.restart()
    known = world.transactions.find_transaction("app")
    assert known is not None
    assert known.producer_id == owner.producer_id


def test_producer_ids_of_a_failed_transaction_shard_are_not_given_again(world: World) -> None:
    """Check that ids aren't reused, even if the id log comes from a broker whose ids are ahead."""
    owner = world.init()
    [batch] = transaction_log(world).batches()
    [record] = batch.iterate_records()
    assert record.value is not None
    ahead = record.value[:2] + struct.pack(">q", 5_000) + record.value[10:]
    damage(transaction_log(world), record.key, ahead)
    damage(transaction_log(world), TRANSACTION_KEY, b"\0\1\xffdamaged")
    world.restart()
    assert world.init(None).producer_id > 5_000 > owner.producer_id


def test_a_commit_waits_for_the_failed_group_shard_that_has_its_offsets(world: World) -> None:
    owner = world.init()
    world.add(owner)
    world.add_group(owner)
    world.stage(owner, 17)
    damage(world.group_log(), OFFSET_KEY)
    world.restart()
    assert code_of(world.stage, owner, 18) is Code.NOT_COORDINATOR
    assert world.end(owner) == ProducerIdAndEpoch(owner.producer_id, owner.producer_epoch)
    assert world.words["words", 0].markers() == [(owner.producer_id, 0, True)]
    known = world.transactions.find_transaction("app")
    assert known is not None
    assert known.status is TransactionStatus.PREPARE_COMMIT
    assert world.transactions.partitions_without_marker(known) == {
        ("__consumer_offsets", world.groups.partition_of("counts"))
    }
    assert code_of(world.init) is Code.CONCURRENT_TRANSACTIONS
    world.clock.advance(DAY_MS)
    repair(world.group_log())
    world.restart()
    world.clock.advance(10_000)
    assert world.offset() == 17
    assert world.init() == ProducerIdAndEpoch(owner.producer_id, owner.producer_epoch + 1)


def test_a_damaged_marker_fails_the_shard(world: World) -> None:
    damage(world.group_log(), OFFSET_KEY, None)
    log = world.group_log()
    log.append_marker(7, 0, True, 0)
    base, data = log.appended[-1]
    log.appended[-1] = (base, data[:-6] + b"\xff" * 6)
    world.restart()
    assert code_of(world.fetch) is Code.NOT_COORDINATOR


@pytest.mark.parametrize("version", [b"\0", b"\1"], ids=["damaged", "of a newer broker"])
def test_without_a_readable_log_no_producer_id_is_given_again_and_the_rest_is_served(
    world: World, version: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    owner = world.init()
    world.commit(7)
    [batch] = world.metadata_log.batches()
    [record] = batch.iterate_records()
    assert record.value is not None
    cut = 3 if version == b"\1" else len(record.value)
    damage(world.metadata_log, None, record.value[:2] + version + record.value[cut:])
    end_offset = world.metadata_log.end_offset
    world.restart()
    assert errors(caplog)[0].startswith("__cluster_metadata can't be loaded.")
    assert code_of(world.init, "another") is Code.COORDINATOR_LOAD_IN_PROGRESS
    assert code_of(world.init, None) is Code.COORDINATOR_LOAD_IN_PROGRESS
    assert world.init() == ProducerIdAndEpoch(owner.producer_id, 1), "it has one already"
    assert world.offset() == 7
    assert world.metadata_log.end_offset == end_offset


def test_a_failed_shard_is_in_the_figures(world: World) -> None:
    world.commit(7)
    damage(world.group_log(), OFFSET_KEY)
    world.restart()
    name = f"__consumer_offsets-{world.groups.partition_of('counts')}"
    other = f"__consumer_offsets-{1 - world.groups.partition_of('counts')}"
    found = figures(world)
    assert found["millrace_shard_failed", name] == 1
    assert found.get(("millrace_shard_active", name), 0) == 0
    assert found.get(("millrace_shard_failed", other), 0) == 0
    assert found["millrace_shard_active", other] == 1
