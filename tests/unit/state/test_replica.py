"""Test a copy of a topic that one thread writes and others read."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.errors import StoreCorrupted
from state.replica import TopicReplica
from state.rocksdb import RocksDisk
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint
from tests.unit.state.rocksdb.databases import DamagedDatabase

TEXT = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)


@pytest.mark.parametrize("damaged", [False, True])
def test_one_that_was_found_damaged_is_empty_when_it_is_opened_again(
    tmp_path: Path, damaged: bool
) -> None:
    database = DamagedDatabase()
    disk = RocksDisk(tmp_path / "rates", store_name="rates", open_database=database.open)
    replica = TopicReplica("rates", disk, TEXT)
    replica.write_copied_records(
        [(0, 0, b"eur", b"1.1", 5)], StoreCheckpoint(0, "id", positions=(1,))
    )
    if damaged:
        database.is_damaged = True
        with pytest.raises(StoreCorrupted, match="checksum"):
            replica.open_view().get("eur")
    replica.close()
    again = TopicReplica("rates", RocksDisk(tmp_path / "rates"), TEXT)
    assert (again.read_checkpoint() is None) == damaged
    assert again.open_view().get("eur") == (None if damaged else "1.1")
    again.close()
