"""Test that look-ups in global tables are noted with the state in which they found the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from state.memory import MemoryDisk
from state.replica import CopiedRecord, TopicReplica
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint
from streams.common.topic_id_hashes import hash_topic_id
from streams.ledger import decode_global_lookup_states
from streams.runtime.tasks.global_lookups import STATES_MAX, GlobalLookups, StepLookups

TEXT = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)


class InterruptingDisk(MemoryDisk):
    """Represents a disk beside which another thread does something, right after the next read."""

    def __init__(self) -> None:
        super().__init__()
        self.after_read: Callable[[], None] | None = None
        self.is_full = False

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        if self.is_full:
            raise OSError("no space left on device")
        super().write_changes(changes, checkpoint, new_keys)

    def get(self, key: bytes) -> bytes | None:
        found = super().get(key)
        interruption, self.after_read = self.after_read, None
        if interruption is not None:
            interruption()
        return found


class Table:
    """Represents a global table of three partitions with one key, `eur`."""

    def __init__(self) -> None:
        self.disk = InterruptingDisk()
        self.replica = TopicReplica("rates", self.disk, TEXT)
        self.lookups = GlobalLookups()
        self.store: StepLookups = self.lookups.open_store(self.replica, "joined")

    def change(self, rate: str, *positions: int) -> None:
        record: CopiedRecord = (0, 0, b"eur", rate.encode(), 5)
        self.replica.write_copied_records([record], StoreCheckpoint(0, "id", positions=positions))

    def find(self) -> Any:
        found = self.store.entry("eur")
        return None if found is None else found.value


@pytest.fixture
def table() -> Table:
    return Table()


def states(taken: Mapping[str, str]) -> list[tuple[int, tuple[int, ...]]]:
    topic_id_hash, found = decode_global_lookup_states(taken["joined"])
    assert topic_id_hash == hash_topic_id("id")
    return [(each.first, each.positions) for each in found]


def test_each_state_is_noted_with_the_number_of_its_first_look_up(table: Table) -> None:
    table.change("1.1", 3, 0)
    assert [table.find(), table.find()] == ["1.1", "1.1"]
    table.change("1.2", 4, 0)
    table.change("1.3", 4, 7)
    assert table.find() == "1.3"
    assert states(table.lookups.pop_encoded_states()) == [(0, (3, 0)), (2, (4, 7))]


def test_a_transaction_begins_with_its_own_number_and_state(table: Table) -> None:
    table.change("1.1", 3)
    table.find()
    assert states(table.lookups.pop_encoded_states()) == [(0, (3,))]
    assert table.lookups.pop_encoded_states() == {}
    table.find()
    assert states(table.lookups.pop_encoded_states()) == [(0, (3,))]


def test_a_row_that_changes_while_it_is_looked_up_is_looked_up_again(table: Table) -> None:
    table.change("1.1", 3)
    table.disk.after_read = lambda: table.change("1.2", 4)
    assert table.find() == "1.2"
    assert states(table.lookups.pop_encoded_states()) == [(0, (4,))]


def test_states_after_a_write_that_failed_are_not_told(table: Table) -> None:
    table.change("1.1", 3)
    table.find()
    table.disk.is_full = True
    with pytest.raises(OSError, match="no space"):
        table.change("1.2", 4)
    assert table.find() == "1.1"
    assert table.lookups.pop_encoded_states() == {}


def test_very_many_states_are_not_told(table: Table) -> None:
    for number in range(STATES_MAX + 1):
        table.change("1.1", number)
        table.find()
    assert table.lookups.pop_encoded_states() == {}
    table.find()
    assert states(table.lookups.pop_encoded_states()) == [(0, (STATES_MAX,))]
