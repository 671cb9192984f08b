"""Hold back a store's disk whose keys have another layout than the store would write now.

The checkpoint names the layout. A window store whose retention was changed cuts time into other
segments, and a store that becomes one of another kind reads other keys: what is on disk would not
be found, or be taken for something else. So the store has to be emptied, and caught up from its
changelog, which does not depend on the layout. But the disk may be the only copy of what a
changelog has lost. So it is held back, unread and unwritten, until somebody has asked the changelog
and clears it; else it stays as it is, and the declaration that wrote it goes on with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from state.database_statistics import DatabaseStatistic
from state.errors import StateError, StoreCorrupted
from state.keys import DiskChange, DiskEntry
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint


def read_checkpoint_or_hold_disk_back(
    disk: StoreDisk, layout: str, store_name: str
) -> tuple[StoreDisk, StoreCheckpoint | None]:
    """Return the disk with its checkpoint, or with None if the store can't go on from its data.

    A disk of another layout is returned held back (`HeldBackDisk`). A damaged one stays so, and
    says so again when it is read.
    """
    try:
        checkpoint = disk.read_checkpoint()
    except StoreCorrupted:
        return disk, None
    if checkpoint is None or checkpoint.layout == layout:
        return disk, checkpoint
    reason = (
        "its kind, its retention or its grace was changed "
        f"(on disk {_get_layout_or_default(checkpoint)}, now {layout or 'key-value'})"
    )
    return HeldBackDisk(disk, store_name, reason), None


def _get_layout_or_default(checkpoint: StoreCheckpoint) -> str:
    return checkpoint.layout or "key-value"


class HeldBackDisk:
    """Wraps a disk whose content can't be used, for `reason`, until it is cleared.

    Its checkpoint can be read, as evidence. Reads and writes of data raise StateError: whoever
    makes one has not asked first whether the store can be used.
    """

    def __init__(self, disk: StoreDisk, store_name: str, reason: str) -> None:
        self.disk = disk
        self.reason = reason
        self._store_name = store_name

    def get(self, key: bytes) -> bytes | None:
        raise self._create_unusable_error()

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[DiskEntry]:
        raise self._create_unusable_error()

    def raise_if_corrupted(self) -> None:
        self.disk.raise_if_corrupted()

    def approximate_count(self) -> int:
        return self.disk.approximate_count()

    def read_properties(self, names: Iterable[str]) -> dict[str, int]:
        return self.disk.read_properties(names)

    def read_statistics(self, names: Collection[str]) -> dict[str, DatabaseStatistic]:
        return self.disk.read_statistics(names)

    def read_checkpoint(self) -> StoreCheckpoint | None:
        return self.disk.read_checkpoint()

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        raise self._create_unusable_error()

    def delete_range(self, first: bytes, end: bytes) -> None:
        raise self._create_unusable_error()

    def load_changes(self, changes: Iterable[DiskChange], checkpoint: StoreCheckpoint) -> None:
        raise self._create_unusable_error()

    def finish_load(self) -> None:
        """Do nothing: nothing was loaded."""

    def clear_all_data(self) -> None:
        self.disk.clear_all_data()

    def close(self) -> None:
        self.disk.close()

    def _create_unusable_error(self) -> StateError:
        return StateError(f"store {self._store_name!r} is not used as it is: {self.reason}")
