"""A copy of a topic that one thread writes and others read."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.errors import Corrupt
from state.replica import Replica
from state.rocksdb import RocksDisk
from state.store import Checkpoint
from state.transaction import Codecs
from tests.unit.state.rocksdb.databases import Damaged

TEXT = Codecs(str.encode, bytes.decode, str.encode, bytes.decode)


@pytest.mark.parametrize("damaged", [False, True])
def test_one_that_was_found_damaged_is_empty_when_it_is_opened_again(
    tmp_path: Path, damaged: bool
) -> None:
    database = Damaged()
    disk = RocksDisk(tmp_path / "rates", store="rates", open_database=database.open)
    replica = Replica("rates", disk, TEXT)
    replica.apply([(0, 0, b"eur", b"1.1", 5)], Checkpoint(0, "id", positions=(1,)))
    if damaged:
        database.is_damaged = True
        with pytest.raises(Corrupt, match="checksum"):
            replica.view().get("eur")
    replica.close()
    again = Replica("rates", RocksDisk(tmp_path / "rates"), TEXT)
    assert (again.checkpoint() is None) == damaged
    assert again.view().get("eur") == (None if damaged else "1.1")
    again.close()
