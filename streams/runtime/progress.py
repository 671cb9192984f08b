"""How far restores are: a plain snapshot for metrics and health, and a listener to watch them."""

from __future__ import annotations

from dataclasses import dataclass

from streams.positions import Partition


@dataclass(frozen=True, slots=True)
class StoreProgress:
    """A store on its way, as of its last batch. Offsets are of its changelog partition."""

    task: str
    store: str
    changelog: Partition
    begin: int
    position: int
    end: int
    records: int
    """Replayed so far."""
    seconds: float
    """Since it set out."""

    @property
    def records_left(self) -> int:
        """At most: offsets of markers, and of what was compacted away, count as well."""
        return max(self.end - self.position, 0)

    @property
    def rate(self) -> float:
        """Offsets passed a second; 0 before the first batch."""
        return (self.position - self.begin) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At that rate; None where it stands still."""
        return self.records_left / self.rate if self.rate > 0 else None

    def __str__(self) -> str:
        left = self.seconds_left
        return (
            f"store {self.store!r} of task {self.task}: {self.records} records replayed, at most "
            f"{self.records_left} left, {self.rate:.0f} a second"
            + (f", {left:.0f} s to go" if left is not None else "")
        )


class RestoreListener:
    """Watches restores: subclass it and override what is wanted. Called beside the stream threads,
    from several of them at once; what it raises is logged and changes nothing. The names, and what
    each is told, are those of Kafka Streams' StateRestoreListener."""

    def on_restore_start(self, changelog: Partition, store: str, begin: int, end: int) -> None:
        """A store is behind: offsets `begin` up to `end` are to be read."""

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        """`records` more were replayed; the store is at `position` now."""

    def on_restore_end(self, changelog: Partition, store: str, records: int) -> None:
        """The store has caught up, with `records` in all."""

    def on_restore_suspended(self, changelog: Partition, store: str, records: int) -> None:
        """The task goes elsewhere; the store keeps what it has got, `records` since the start."""
