"""Tell whether a store without a changelog holds what the task's committed offsets belong to.

Its checkpoint and the metadata of the offsets both name the commits that wrote it
(`streams.runtime.offsets.store_commits`). At a start they are compared:

    the store on this disk                 why                             what happens
    has the last commit                    all is well                     goes on
    is empty                               another machine, or a disk that goes on, with a warning
                                           was lost or removed            (`empty_stores`)
    lacks the last commit only             a crash between Kafka's commit  goes on, with a warning
                                           and the store's
    was begun by another commit            the task went on elsewhere,     set aside, and begun
                                           where the store began empty     empty, with a warning
    lacks more than that                   an old copy was put back        PositionRefused
    is ahead                               older offsets were put back     PositionRefused

What a damaged write-ahead log has lost is found when the store is opened
(`state.rocksdb.commit_mark`). Offsets of a tool, and those without room in their metadata, name no
commits: then nothing is compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from state.directory import StateDirectory
from state.rocksdb import RocksDisk
from state.store import StateStore
from state.store_checkpoint import StoreCheckpoint
from streams.errors import PositionRefused
from streams.runtime.offsets.offset_metadata import OffsetMetadata
from streams.runtime.offsets.store_commits import (
    UNNUMBERED_COMMIT,
    StoreCommits,
    read_store_commits,
)

_EmptyStoreWarning: TypeAlias = str

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptStore:
    """Holds a store without a changelog that is on disk, in the directory `path`.

    `move_data_aside` moves what is there to the directory `former_store_path`.
    """

    store: StateStore
    path: Path
    former_store_path: Path
    move_data_aside: Callable[[Path], object]


def to_kept_store(
    directory: StateDirectory, task_directory: str, store: StateStore, disk: RocksDisk
) -> KeptStore:
    """Return an open store without a changelog with the directories that it has, and may get."""
    path = directory.build_store_path(task_directory, store.name)
    former_store_path = directory.build_former_store_path(task_directory, store.name)
    return KeptStore(store, path, former_store_path, disk.move_data_aside)


class UnloggedCommits:
    """Follows which commits wrote the stores of a task that are on disk and have no changelog.

    `kept` has them by name.
    """

    def __init__(self, task_name: str, kept: Mapping[str, KeptStore]) -> None:
        self.has_room = True
        """Says whether the offsets' metadata have room for the numbers."""
        self._task_name = task_name
        self._kept = dict(kept)
        self._committed: dict[str, StoreCommits] = {}
        self._on_disk: dict[str, StoreCommits] = {}
        self._pending: dict[str, StoreCommits] = {}
        self._warned: set[tuple[str, StoreCommits]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def refuse_differing_stores(self, group: str, committed: Collection[OffsetMetadata]) -> None:
        """Compare each store with the `committed` offsets of its task, before it is used.

        Raises PositionRefused for one that is an old copy, or ahead of the offsets.
        """
        for name, kept in self._kept.items():
            self._pending.pop(name, None)
            self._committed[name] = known = read_store_commits(name, committed)
            self._on_disk[name] = held = _read_checkpoint_commits(kept.store)
            if not known.last or not held.first or held[:2] == known[:2]:
                continue
            lost = self._compare_store_or_refuse(group, name, kept, held, known)
            if lost and (name, known) not in self._warned:
                self._warned.add((name, known))
                log.warning("store %r of task %s in %s %s", name, self._task_name, kept.path, lost)

    def _compare_store_or_refuse(
        self, group: str, name: str, kept: KeptStore, held: StoreCommits, known: StoreCommits
    ) -> _EmptyStoreWarning:
        """Compare a store with the commits that offsets name; return a warning if it is empty."""
        about = f"store {name!r} of task {self._task_name}, which has no changelog, in {kept.path}"
        if held.last > known.last:
            raise PositionRefused(
                f"the committed offsets of group {group!r} are older than its state: by them the "
                f"last commit that wrote {about}, is {known.last}, and it holds that of "
                f"{held.last}. Records would count twice. Commit the offsets that belong to it, or "
                "remove its directory to begin with an empty store"
            )
        if held.first != known.first:
            kept.move_data_aside(kept.former_store_path)
            kept.store.clear_all_data()
            self._on_disk[name] = StoreCommits()
            return (
                f"begins empty: the task went on elsewhere since, where the store was begun anew "
                f"by commit {known.first} of group {group!r} and last written by {known.last}. "
                f"What was here, up to commit {held.last}, is in {kept.former_store_path} now"
            )
        if held.last < known.held:
            raise PositionRefused(
                f"{about}, is an old copy: it holds what was written up to commit {held.last}, and "
                f"group {group!r} has committed its input with what commit {known.last} wrote. "
                "Either an older state directory was put back, or the task ran with another copy "
                "since. Bring the directory back that has it; or remove this one to begin with an "
                "empty store"
            )
        return (
            f"lacks what commit {known.last} of group {group!r} wrote, its last: the worker ended "
            f"between Kafka's commit and the store's. It goes on with what it had before"
        )

    def prepare_commit(self, commit_number: int, written: Collection[str]) -> dict[str, int]:
        """Return the entries of the metadata for a commit, which has `written` stores.

        It may be called again for the same commit.
        """
        entries: dict[str, int] = {}
        for name in self._kept:
            known = self._committed.get(name, StoreCommits())
            disk = self._on_disk.get(name, StoreCommits())
            if name in written:
                pending = StoreCommits(disk.first or commit_number, commit_number, disk.last)
            else:
                pending = known._replace(held=disk.last)
            self._pending[name] = pending
            if self.has_room and pending.last:
                entries |= pending.to_entries(name)
        return entries

    def create_checkpoint(self, name: str, now_ms: int) -> StoreCheckpoint:
        """Return the checkpoint with which a store without a changelog is committed."""
        pending = self._pending.get(name)
        written = pending if pending and self._is_written(name) else self._on_disk.get(name)
        first, last, _ = written or StoreCommits()
        return StoreCheckpoint(0, "", now_ms, first_commit=first, last_commit=last)

    def note_stored(self, name: str) -> None:
        """Note that a store has written the commit numbers that were prepared for it."""
        if (pending := self._pending.pop(name, None)) is None:
            return
        if pending.last != self._committed.get(name, StoreCommits()).last:
            self._on_disk[name] = StoreCommits(pending.first, pending.last)
        self._committed[name] = pending

    def _is_written(self, name: str) -> bool:
        return self._pending[name].last != self._committed.get(name, StoreCommits()).last


def _read_checkpoint_commits(store: StateStore) -> StoreCommits:
    """Return the commits that a store's checkpoint names."""
    checkpoint = store.read_checkpoint()
    if checkpoint is None:
        return StoreCommits()
    return StoreCommits(checkpoint.first_commit or UNNUMBERED_COMMIT, checkpoint.last_commit)
