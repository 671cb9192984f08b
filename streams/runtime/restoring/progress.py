"""Report the progress of restores and standbys: snapshots for metrics, and a listener."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Any

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """Reports how far the restore of a store is, in offsets of its changelog partition."""

    task: str
    store: str
    changelog: Partition
    begin_offset: int
    next_offset: int
    end_offset: int
    restored_records: int
    """Records restored so far."""
    elapsed_s: float
    """Seconds since the restore started."""

    @property
    def records_left(self) -> int:
        """Return how many records are left at most.

        Offsets of markers, and of records that were compacted away, count as well.
        """
        return max(self.end_offset - self.next_offset, 0)

    @property
    def offsets_per_s(self) -> float:
        """Return the offsets restored per second; 0 before the first batch."""
        return (
            (self.next_offset - self.begin_offset) / self.elapsed_s if self.elapsed_s > 0 else 0.0
        )

    @property
    def remaining_s(self) -> float | None:
        """Return the seconds left at the present rate; None where there is no progress."""
        return self.records_left / self.offsets_per_s if self.offsets_per_s > 0 else None

    def __str__(self) -> str:
        left = self.remaining_s
        return (
            f"store {self.store!r} of task {self.task}: "
            f"{format_count(self.restored_records, 'record')} replayed, "
            "at most "
            f"{self.records_left} left, {self.offsets_per_s:.0f} a second"
            + (f", {left:.0f} s to go" if left is not None else "")
        )


@dataclass(frozen=True, slots=True)
class StandbyProgress:
    """Reports how far the store of a standby task has followed its changelog partition."""

    task: str
    store: str
    changelog: Partition
    position: int
    end_offset: int | None
    """The end of the changelog when it was fetched last, some seconds ago; None if unknown."""

    @property
    def lag(self) -> int | None:
        """Return how many offsets the store is behind, markers included; None if unknown."""
        return None if self.end_offset is None else max(self.end_offset - self.position, 0)


class SuspendReason(Enum):
    """Names why a store no longer follows its changelog (KIP-988)."""

    PROMOTED = "promoted"
    """The task becomes active on this worker."""
    MIGRATED = "migrated"
    """The task is no longer a standby of this worker, or the worker ends."""


class RestoreListener:
    """Observes restores and standbys: subclass it and override the methods that you need.

    It is called beside the stream threads, from several of them at once; an exception that it
    raises is logged and changes nothing. The names and parameters are those of Kafka Streams'
    StateRestoreListener and, for the stores of standby and warm-up tasks, of its
    StandbyUpdateListener (KIP-988).
    """

    def on_restore_start(self, changelog: Partition, store: str, begin: int, end: int) -> None:
        """Handle the start of a restore: offsets from `begin` up to `end` are to be read."""

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        """Handle a restored batch of `records` records; the store is at `position` now."""

    def on_restore_end(self, changelog: Partition, store: str, records: int) -> None:
        """Handle the end of a restore that has read `records` records in all."""

    def on_restore_suspended(self, changelog: Partition, store: str, records: int) -> None:
        """Handle a restore that is given up; the store keeps its `records` loaded records."""

    def on_update_start(self, changelog: Partition, store: str, begin: int) -> None:
        """Handle the start of a standby's following: its store reads from offset `begin` on."""

    def on_batch_loaded(
        self, changelog: Partition, store: str, task: str, position: int, records: int, end: int
    ) -> None:
        """Handle a batch of changelog records that a standby has loaded into its store.

        The store is at `position` now; `end` was the changelog's end some seconds ago.
        """

    def on_update_suspended(
        self, changelog: Partition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        """Handle the end of a standby's following; its store stays at `position`."""


def notify_listener(
    listener: RestoreListener, event: str, changelog: Partition, store_name: str, *what: Any
) -> None:
    """Call a method of the restore listener, and log what it raises."""
    try:
        getattr(listener, event)(changelog, store_name, *what)
    except Exception:
        log.exception("the restore listener's %s", event)
