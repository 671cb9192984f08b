"""Test that the stores of a task commit on disk what Kafka has committed."""

from __future__ import annotations

from typing import Any

import pytest

from state.errors import StoreCorrupted
from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.state_serdes import StoreCodecs
from streams.common.topic_partitions import Partition
from streams.errors import TaskCorrupted
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.tasks.task_stores import TaskStores

CODECS = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)


class DamagedStore(KeyValueStore[str, str]):
    """Finds its disk damaged at the commit."""

    def commit(self, checkpoint: Any) -> None:
        raise StoreCorrupted(self.name, "memory", "planted")


def test_a_damaged_store_takes_no_committed_change_from_one_without_a_changelog() -> None:
    damaged = DamagedStore("damaged", MemoryDisk(), CODECS, clock=lambda: 1)
    other = KeyValueStore[str, str]("other", MemoryDisk(), CODECS, clock=lambda: 1)
    logged = LoggedStore(damaged, Partition("a-damaged-changelog", 0), "id", 1)
    stores = TaskStores("0_0", {"damaged": logged}, {"other": other})
    other.put("k", "v")
    stores.serialize_changes()
    with pytest.raises(TaskCorrupted, match="damaged"):
        stores.commit_changes(now_ms=1)
    stores.roll_back_changes()
    assert other.get("k") == "v"
