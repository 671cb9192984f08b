"""Test which committed records a checkpoint proves to be in a store, and what accounts for them."""

from __future__ import annotations

import pytest

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import StreamsError
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.tasks.offset_proof import OffsetProof, prove_offsets
from streams.runtime.tasks.task_stores import TaskStores
from tests.unit.streams.runtime.restored import CHANGELOG, INPUT, Restoring

MORE = Partition("more", 0)


def create_store(*, is_source_topic: bool = False) -> LoggedStore:
    disk = MemoryDisk()
    store = Restoring().store({"a": "00000001"}, 5, disk=disk)
    store.disk = disk
    store.is_source_topic = is_source_topic
    return store


@pytest.mark.parametrize(
    ("checkpoint", "end"),
    [
        (None, 0),
        (StoreCheckpoint(5, "another topic", committed_end=4), 0),
        (StoreCheckpoint(5, "id", committed_end=0), 0),
        (StoreCheckpoint(5, "id", committed_end=4), 4),
    ],
)
def test_a_checkpoint_says_where_committed_records_end(
    checkpoint: StoreCheckpoint | None, end: int
) -> None:
    store = create_store()
    store.apply_disk_checkpoint(checkpoint, "id", 5)
    assert store.committed_end == end


@pytest.mark.parametrize(("log_end", "end"), [(5, 5), (4, 0)])
def test_a_table_of_its_own_topic_holds_what_is_below_its_position(log_end: int, end: int) -> None:
    store = create_store(is_source_topic=True)
    store.apply_disk_checkpoint(StoreCheckpoint(5, "id"), "id", log_end)
    assert store.committed_end == end


def test_a_record_at_the_committed_position_is_refused_and_one_below_it_is_not() -> None:
    store, proof = create_store(), OffsetProof("a", positions={CHANGELOG: 4})
    store.committed_end = 4
    proof.check_store(store)
    store.committed_end = 5
    with pytest.raises(StreamsError, match=r"stood at 4, and store .* up to 5"):
        proof.check_store(store)


def test_kafka_streams_positions_that_stand_beside_ours_are_not_compared() -> None:
    stores = TaskStores("0_0", {"c": create_store()})
    committed = {
        INPUT: OffsetAndMetadata(3, "AgAAAAAAAAAB"),
        MORE: OffsetAndMetadata(3, encode_metadata({"c": 2})),
    }
    found = prove_offsets("a", [INPUT, MORE], stores, committed, {}, is_transactional=True)
    assert (found.problem, found.positions) == ("", {})
    del committed[INPUT]
    found = prove_offsets("a", [INPUT, MORE], stores, committed, {}, is_transactional=True)
    assert (found.problem, found.positions) == ("", {CHANGELOG: 2})
    found = prove_offsets("a", [INPUT, MORE], stores, committed, {}, is_transactional=False)
    assert (found.problem, found.positions) == ("", {})
