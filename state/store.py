"""Contracts of the state package: what a store's disk offers, and what a changelog carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from state.buffered import Headers
from state.early import RefusedChange

ChangelogEntry = tuple[bytes, bytes | None, int]
"""One write as it stands in a changelog: key, value (None is a deletion), timestamp in ms. A plain
tuple: one is made for each key that a transaction wrote."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a store knows of its changelog.

    `position` is the first changelog offset that the store has not seen. `topic_id` tells a
    changelog that was deleted and made again from the one that the store was written with.
    `written_ms` is the time of the write that brought it, by the wall clock; 0 if nobody noted it.
    `stream_time_ms` is the largest time that a store which forgets by time has seen; -1 if none.
    `layout` says how keys lie on disk (`state.layout`); empty: as they are in the changelog.
    `positions` are, for a copy of a whole topic, those of its partitions by number.
    """

    position: int
    topic_id: str
    written_ms: int = 0
    stream_time_ms: int = -1
    layout: str = ""
    positions: tuple[int, ...] = ()


class Disk(Protocol):
    """Where committed state is kept: bytes to bytes, and a checkpoint that moves with the data.

    Any call may raise StateError: the machine is in trouble, and nothing is wiped; or Corrupt: what
    is on disk can't be read, and `clear` makes it empty. A disk whose database can't even be opened
    is there all the same: each call raises Corrupt, but `clear` and `close`.
    """

    def get(self, key: bytes) -> bytes | None: ...

    def range(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Entries from `first` up to, and without, `last`, in key order or against it; None: from
        the first, to the last there is. An iterator sees the disk as it was at its first step; it
        holds resources until it is exhausted, closed, or the disk is closed."""
        ...

    def check(self) -> None:
        """Raise Corrupt if a call has found damage since the last `clear`. Nothing is read."""
        ...

    def approximate_count(self) -> int:
        """About how many entries there are."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the last `write` that became durable; None before the first."""
        ...

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        """Apply `changes` (None deletes), and the checkpoint after the last of them.

        A crash in the middle leaves the old checkpoint beside a prefix of the changes, which a
        replay of the changelog from the old checkpoint puts right.
        """
        ...

    def delete_range(self, first: bytes, last: bytes) -> None:
        """Delete from `first` up to, and without, `last`: for what has expired."""
        ...

    def load(self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: Checkpoint) -> None:
        """`write` in bulk, for a restore: the last of several changes of a key wins. It is durable
        after `loaded`; a crash before that may take back whole calls, the checkpoint with them.

        One call costs some 20 us beside its changes: from 1 000 changes on a larger call is no
        faster. They are taken as they come (pass a generator, copy nothing). `checkpoint` goes on
        answering with what is durable, which moves at intervals, and at `loaded`. A restore that
        loads little goes through the log and makes `loaded` free.
        """
        ...

    def loaded(self) -> None:
        """The restore has ended, or paused: make durable what was loaded."""
        ...

    def clear(self) -> None:
        """Forget everything, the checkpoint included."""
        ...

    def close(self) -> None: ...


class StateStore(Protocol):
    """What the runtime needs of a store, whatever its kind."""

    name: str
    clock: Callable[[], int]
    """The time in ms of a write that is given none: of the record being processed."""
    changelog_headers: Headers | None
    """What each value has as headers in the changelog."""

    @property
    def uncommitted_bytes(self) -> int:
        """About how much memory the running transaction's writes take."""
        ...

    def check(self) -> None:
        """Raise Corrupt if a read has found damage, also where its error was caught: what has been
        written since may be wrong. Costs nothing."""
        ...

    def serialize_early(self, on_refused: Callable[[], object] | None) -> None:
        """Serialise each value as it is written, and call `on_refused` for each that the serde
        refuses; None: at the commit again. Only while the transaction has written nothing."""
        ...

    def settle(self) -> list[RefusedChange]:
        """Serialise what the last record may have changed in place, where the store serialises
        early. Returns what the serde refused and was taken back."""
        ...

    def drain(self) -> list[ChangelogEntry]:
        """Serialise each dirty key once, for the changelog. The same list until the outcome."""
        ...

    def commit(self, checkpoint: Checkpoint) -> None:
        """Kafka has committed, below `checkpoint`: make what was drained durable."""
        ...

    def rollback(self) -> None:
        """Forget the transaction, and every object that it handed out."""
        ...

    def checkpoint(self) -> Checkpoint | None: ...

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        """Apply committed changelog entries, in bulk. Replaying twice is safe."""
        ...

    def caught_up(self) -> None:
        """The restore has ended, or paused: make durable what was replayed."""
        ...

    def clear(self) -> None:
        """Forget everything, committed state included: only for a store that could lie."""
        ...

    def close(self) -> None: ...
