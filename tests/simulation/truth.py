"""Decode a partition's log independently: who wrote what, and how each transaction ended.

The broker keeps the same facts (stable offset, open and aborted transactions); the checkers compare
the two. Everything here follows from the bytes of the log in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.batches import decode


@dataclass(slots=True)
class Entry:
    """Represents one data record; `committed` is None while its transaction is open."""

    offset: int
    producer_id: int
    epoch: int
    key: bytes | None
    value: bytes
    committed: bool | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class Marker:
    offset: int
    producer_id: int
    epoch: int
    committed: bool


@dataclass(slots=True)
class Truth:
    """Represents one partition, read up to `end_offset`."""

    end_offset: int = 0
    start_offset: int = 0
    """The first offset read here; earlier ones had been deleted."""
    entries: list[Entry] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    open: dict[int, list[Entry]] = field(default_factory=dict)  # by producer id
    by_offset: dict[int, Entry] = field(default_factory=dict)

    def feed(self, data: bytes) -> None:
        """Read whole batches from `end_offset` on."""
        for batch in decode(data):
            self.end_offset = batch.last_offset + 1
            if batch.is_control:
                committed = batch.marker == "commit"
                marker = Marker(
                    batch.base_offset, batch.producer_id, batch.producer_epoch, committed
                )
                self.markers.append(marker)
                for entry in self.open.pop(batch.producer_id, ()):
                    entry.committed = committed
                continue
            for offset, (key, value), time_ms in zip(
                batch.offsets, batch.records, batch.timestamps_ms, strict=True
            ):
                entry = Entry(
                    offset,
                    batch.producer_id,
                    batch.producer_epoch,
                    key,
                    value or b"",
                    None if batch.is_transactional else True,
                    time_ms,
                )
                self.entries.append(entry)
                self.by_offset[entry.offset] = entry
                if batch.is_transactional:
                    self.open.setdefault(batch.producer_id, []).append(entry)

    @property
    def stable_offset(self) -> int:
        """Return the first offset of the oldest open transaction."""
        firsts = [entries[0].offset for entries in self.open.values()]
        return min(firsts, default=self.end_offset)

    def committed(self, below: int) -> list[Entry]:
        """Return the entries that a read_committed reader may have seen up to this offset."""
        return [entry for entry in self.entries if entry.committed and entry.offset < below]
