"""Test that no store is emptied before its changelog is known to have everything that is in it.

Whatever the reason is: keys in the layout of another declaration, damage, a restore that took too
long. Else the store may be the only copy of what the changelog has lost.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from state.errors import StoreCorrupted
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import PositionRefused
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    RestoreStart,
    find_source_restore_start,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.offset_metadata import encode_metadata
from tests.unit.streams.runtime.restored import CHANGELOG, INPUT, Restoring, held

OTHER_LAYOUT = "windows in segments of 60000 ms"
LEFT = r"its records 0 to 0 were removed .* can't be used \({}.*is left as it is: start "
BY_THE_FORMER = LEFT.format("its kind, its retention or its grace was changed") + "the version"


class DamagedDisk(MemoryDisk):
    """Stands in for a disk of which nothing can be read until it is cleared."""

    is_damaged = True

    def read_checkpoint(self) -> StoreCheckpoint | None:
        self._raise_damage()
        return super().read_checkpoint()

    def load_changes(
        self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: StoreCheckpoint
    ) -> None:
        self._raise_damage()
        super().load_changes(changes, checkpoint)

    def clear_all_data(self) -> None:
        super().clear_all_data()
        self.is_damaged = False

    def _raise_damage(self) -> None:
        if self.is_damaged:
            raise StoreCorrupted("c", "/state", "bad block")


def load(world: Restoring, *, is_cut: bool = True) -> None:
    """Write two records to the changelog; the first of them is gone if it is cut."""
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    if is_cut:
        world.kafka.logs[CHANGELOG].start_offset = 1


def open_store(world: Restoring, disk: MemoryDisk, topic_id: str | None = None) -> LoggedStore:
    """Return a store with a row that is at the changelog's end, in another layout."""
    return world.store(
        {"row": "kept"},
        *(2, CHANGELOG, 1_000_000),
        disk=disk,
        topic_id=topic_id,
        layout=OTHER_LAYOUT,
        committed_end=2,
    )


def is_kept(disk: MemoryDisk) -> bool:
    """Return whether the disk has the row and the checkpoint that it began with."""
    checkpoint = MemoryDisk.read_checkpoint(disk)
    rows = [key for key, _ in disk.range(None, None)]
    return (
        rows == [b"row"]
        and checkpoint is not None
        and (checkpoint.position, checkpoint.layout) == (2, OTHER_LAYOUT)
    )


def restore_refused(world: Restoring, logged: LoggedStore, match: str, required: int = 2) -> None:
    """Restore a store, which is refused, whether offsets were committed with it or not."""
    world.restorer.add_tasks([world.task(logged, required=required)])
    with pytest.raises(PositionRefused, match=match):
        world.until_ready()


@pytest.mark.parametrize("required", [2, 0], ids=["committed", "known by the store alone"])
def test_a_store_of_another_layout_is_left_as_it_is_where_the_changelog_was_cut(
    required: int,
) -> None:
    world, disk = Restoring(), MemoryDisk()
    load(world)
    restore_refused(world, open_store(world, disk), BY_THE_FORMER, required)
    assert is_kept(disk)


def test_a_store_of_another_layout_is_left_as_it_is_where_the_changelog_was_made_again() -> None:
    world, disk = Restoring(), MemoryDisk()
    load(world, is_cut=False)
    logged = open_store(world, disk, topic_id="former")
    restore_refused(world, logged, "is not the one that store 'a-c-changelog'")
    assert is_kept(disk)


def test_a_store_of_another_layout_is_rebuilt_where_the_changelog_has_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    load(world, is_cut=False)
    logged = open_store(world, MemoryDisk())
    assert world.restore(logged) == 2
    assert held(logged) == {"a": "1", "b": "2"}
    assert logged.rebuild_reason == ""
    assert "is rebuilt from its changelog: its kind, its retention or its grace" in caplog.text


def test_a_damaged_store_is_left_as_it_is_where_the_changelog_was_cut() -> None:
    world, disk = Restoring(), DamagedDisk()
    load(world)
    logged = open_store(world, disk)
    restore_refused(
        world, logged, LEFT.format("store 'c' in /state is damaged") + "a worker whose state"
    )
    assert disk.is_damaged
    assert is_kept(disk)


def test_a_store_that_a_running_task_found_damaged_is_left_as_it_is_too() -> None:
    world, disk = Restoring(), MemoryDisk()
    load(world)
    logged = world.store({"row": "kept"}, position=2, disk=disk)
    task = world.task(logged, required=2)
    task.stores.mark_stores_for_rebuild([logged.store.name], "a block's checksum")
    world.restorer.add_tasks([task])
    with pytest.raises(PositionRefused, match=LEFT.format("a block's checksum")):
        world.until_ready()
    assert held(logged) == {"row": "kept"}


def test_a_store_that_had_no_changelog_until_now_is_not_emptied_for_one() -> None:
    world, disk = Restoring(), MemoryDisk()
    logged = world.store({"row": "kept"}, disk=disk, topic_id="")
    restore_refused(world, logged, "kept without one until now.*is left as it is", required=0)
    assert held(logged) == {"row": "kept"}


@pytest.mark.parametrize("disk_class", [MemoryDisk, DamagedDisk])
def test_a_standby_is_left_as_it_is_too_until_the_changelog_has_everything(
    disk_class: type[MemoryDisk], caplog: pytest.LogCaptureFixture
) -> None:
    world, disk = Restoring(), disk_class()
    load(world)
    metadata = encode_metadata({CHANGELOG.topic: 2})
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(7, metadata)
    logged = open_store(world, disk)
    world.follow(logged)
    for _ in range(5):
        world.follow_to_end(after_s=10)
    assert is_kept(disk)
    assert caplog.text.count("is left as it is") == 1
    assert world.lags() == {CHANGELOG.topic: None}
    world.kafka.logs[CHANGELOG].start_offset = 0  # the records were brought back
    world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("end", [20, 0], ids=["rows were read", "nothing was read"])
def test_a_table_is_not_emptied_where_its_own_topic_has_lost_its_first_rows(end: int) -> None:
    source = ChangelogRange(Partition("rows", 0), 10, end, "id", None, 5)

    def find(*, accepts_loss: bool) -> RestoreStart:
        return find_source_restore_start(
            *("t", StoreCheckpoint(20, "id"), source, accepts_loss), rebuild_reason="damaged"
        )

    accepted = find(accepts_loss=True)
    assert (accepted.position, accepted.rebuild_reason) == (10, "damaged")
    if not end:
        assert find(accepts_loss=False).loss == ""
        return
    with pytest.raises(PositionRefused, match=r"restores store 't' .* begins at 10.*left as it"):
        find(accepts_loss=False)
