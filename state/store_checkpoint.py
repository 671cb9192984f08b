"""Define StoreCheckpoint, which says on a store's disk how far it has applied its changelog.

A field is added here, with a default for stores that were written without it. Its bytes are written
and read by `state.rocksdb.checkpoints`; the runtime sets it (`LoggedStore.create_checkpoint`) and
acts on it (`find_restore_start`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreCheckpoint:
    """Records how far a store has applied its changelog, and the layout of its disk.

    `position` is the first changelog offset that the store has not applied. `topic_id` tells a
    changelog that was deleted and created again from the one that the store was written with.
    `written_ms` is the wall-clock time of the write that brought it; 0 if nobody noted it.
    `stream_time_ms` is the largest time that a store with expiry has been given; -1 if none.
    `layout` names the layout of keys on disk (`state.disk_layout`); empty: as in the changelog.
    `committed_end` is the changelog offset after the last committed record that the store is known
    to have applied; -1 where none is noted, as for a store without a changelog. Aborted records
    and markers, which `position` moves over, don't count.
    `positions` are, for a copy of a whole topic, the offsets of its partitions by number.
    `first_commit` and `last_commit` are, for a store without a changelog, the numbers of the task's
    commits that first wrote it since it was empty, and last; 0 before the first of them.
    """

    position: int
    topic_id: str
    written_ms: int = 0
    stream_time_ms: int = -1
    layout: str = ""
    positions: tuple[int, ...] = ()
    committed_end: int = -1
    first_commit: int = 0
    last_commit: int = 0
