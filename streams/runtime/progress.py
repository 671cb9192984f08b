"""Report the progress of restores: a snapshot for metrics and health, and a listener."""

from __future__ import annotations

from dataclasses import dataclass

from streams.common.topic_partitions import Partition


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
            f"store {self.store!r} of task {self.task}: {self.restored_records} records replayed, "
            "at most "
            f"{self.records_left} left, {self.offsets_per_s:.0f} a second"
            + (f", {left:.0f} s to go" if left is not None else "")
        )


class RestoreListener:
    """Observes restores: subclass it and override the methods that you need.

    It is called beside the stream threads, from several of them at once; an exception that it
    raises is logged and changes nothing. The names and parameters are those of Kafka Streams'
    StateRestoreListener.
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
        """Handle a restore that is given up; the store keeps what it has got, `records` in all."""
