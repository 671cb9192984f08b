"""Send what a transaction has changed in a store to the store's changelog.

Where the topic of a table takes the place of its store's changelog, the store was filled from that
topic, nothing is logged, and the store's position is the task's offset of the topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from state.errors import StoreCorrupted
from state.shown_values import quote_value
from state.store import StateStore, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from streams.common.counted import format_count
from streams.common.topic_partitions import NO_TIME, Partition
from streams.runtime.changelogs.changelog import NO_EXPIRY, ChangelogExpiry, ChangelogRange
from streams.runtime.changelogs.reencoded_record import ReencodedRecord
from streams.runtime.changelogs.window_expiry import WindowExpiry
from streams.runtime.clients import translate_produce_error
from streams.runtime.clients.delivered_offsets import add_offset_tracking
from streams.runtime.clients.errors import ChangeTooLarge, is_too_large
from streams.runtime.clients.interfaces import ProducerClient

log = logging.getLogger(__name__)

StoredRow: TypeAlias = tuple[bytes, bytes | None]
"""Key and value of a row as its store has them; without a value the row is deleted."""

_LARGE_BYTES = 500_000
"""From this size on a change is described where a changelog can't be written."""


@dataclass(slots=True)
class LoggedStore:
    """Pairs a store with its changelog partition and its position there.

    The position is the first changelog offset that the store does not contain.
    """

    store: StateStore
    changelog: Partition
    changelog_topic_id: str
    changelog_position: int
    disk: StoreDisk | None = None
    """The committed state of the store, for readers outside the stream thread."""
    is_source_topic: bool = False
    """Whether `changelog` is the topic of the store's table, which others write: nothing is logged
    then."""
    encode_row: Callable[[Any], StoredRow | None] = lambda message: (message.key(), message.value())
    """Returns key and value of a record of the table's topic, which has a key, as the store has
    them. None: the record is no row of the table."""
    left_out_count: int = 0
    """How many records of the table's topic with a key were restored without, as no rows."""
    committed_source_offset: int = 0
    """The committed offset of the table's topic, up to which such a store is restored."""
    first_source_offset: int = 0
    """The offset at which the group began to read the table's topic, by a reset policy: no row is
    below it."""
    expiry: ChangelogExpiry = NO_EXPIRY
    """The first records of the changelog that may be gone, by the committed offsets."""
    window_expiry: WindowExpiry = field(default_factory=WindowExpiry)
    """The progress of expiry in the changelog of a window, session or versioned store."""
    committed_id_hash: int | None = None
    """The hash of the id that `changelog` had when offsets were committed; None if unknown."""
    restored_records: int = 0
    """How many changelog records were read to restore it since it was opened."""
    damage: str = ""
    """Why the store is to be emptied although its declaration fits: empty if it can be used."""

    _logged_left_out: bool = False
    standby_sequence: int = 1
    """Counts the times at which readers of a standby's store have to look again: odd while it may
    not be read, since it is written or has never had all of its changelog."""
    standby_full_ms: int = 0
    """A wall-clock time in ms of which a standby's store has all that was committed; 0 if unknown.
    """

    def hide_from_readers(self) -> None:
        """Let no other thread read the store, which is about to change."""
        self.standby_sequence |= 1

    def show_to_readers(self, complete_as_of_ms: int) -> None:
        """Let other threads read a standby's store, which has all that was committed at a time."""
        self.standby_full_ms = complete_as_of_ms
        self.standby_sequence += self.standby_sequence % 2

    def select_rows_and_count_others(
        self, messages: list[Any], position: int, end_offset: int
    ) -> list[Any]:
        """Return the records of a table's topic below `position` that are rows of the table.

        They have the bytes that the store has. Others have no key, or were skipped when they were
        processed. How many those are is logged once, where the restore reaches `end_offset`.
        """
        first = self.first_source_offset
        keyed = [
            each
            for each in messages
            if first <= each.offset() < position and each.key() is not None
        ]
        rows = []
        for each in keyed:
            row = self.encode_row(each)
            if row is not None:
                is_same = row == (each.key(), each.value())
                rows.append(each if is_same else ReencodedRecord(each, *row))
        self.left_out_count += len(keyed) - len(rows)
        if position >= end_offset and self.left_out_count and not self._logged_left_out:
            self._logged_left_out = True
            log.warning(
                "store %r was restored from %s without %s that no row was made of: its serdes "
                "can't read it, or find no key, or its timestamp is negative",
                self.store.name,
                self.changelog,
                format_count(self.left_out_count, "record"),
            )
        return rows

    def note_changelog_start(self, changelog: ChangelogRange, *, is_accepted: bool) -> None:
        """Note the changelog's start offset as expired, if no record was lost before it."""
        start_offset = changelog.start_offset
        if self.expiry.is_versioned:
            if is_accepted or changelog.tombstone_retention_ms is not None:
                self.window_expiry = WindowExpiry()  # so that all is written again at once
            return
        if is_accepted or self.expiry.may_begin_at(start_offset, changelog.fetched_at_ms):
            expired = self.window_expiry.expired_offset or 0
            self.window_expiry.expired_offset = max(expired, start_offset)

    committed_end: int = 0
    """The end of the committed records of `changelog` that the store is known to hold.

    Unlike the position, it does not move over markers and aborted records."""

    @property
    def rebuild_reason(self) -> str:
        """Return why the store is to be rebuilt before it is used; empty if it can be used.

        Nobody empties it before the changelog was asked whether it has everything.
        """
        return self.damage or self.store.rebuild_reason

    def read_checkpoint(self) -> StoreCheckpoint | None:
        """Return the store's checkpoint; None if it was never written.

        Raises StoreCorrupted, unless it is known that the store is to be rebuilt: then None.
        """
        try:
            return self.store.read_checkpoint()
        except StoreCorrupted:
            if not self.rebuild_reason:
                raise
            return None

    def read_checkpoint_position(self) -> int:
        """Return the position of the store's checkpoint; 0 if it has to be rebuilt, or is empty."""
        checkpoint = None if self.rebuild_reason else self.store.read_checkpoint()
        return 0 if checkpoint is None else checkpoint.position

    def note_restored(self, position: int, record_count: int) -> None:
        """Note that the store is at `position`, after so many records of a restore."""
        self.changelog_position = position
        self.restored_records += record_count

    def clear_store(self) -> None:
        """Empty the store, now that it is known that its changelog has everything."""
        self.store.clear_all_data()
        self.committed_end = 0
        self.damage = ""

    def apply_disk_checkpoint(
        self, checkpoint: StoreCheckpoint | None, topic_id: str, end: int
    ) -> None:
        """Learn from the store's checkpoint which committed records of a changelog it holds.

        `topic_id` and `end` are those of the changelog now: records of one that was deleted and
        made again prove nothing.
        """
        self.committed_end = 0
        if checkpoint is None or checkpoint.topic_id != topic_id:
            return
        if self.is_source_topic:
            self.committed_end = checkpoint.position if checkpoint.position <= end else 0
        else:
            self.committed_end = max(checkpoint.committed_end, 0)

    def create_checkpoint(self, position: int, topic_id: str, written_ms: int) -> StoreCheckpoint:
        """Return a checkpoint at `position`, with the end of the committed records in the store."""
        return StoreCheckpoint(position, topic_id, written_ms, committed_end=self.committed_end)

    def send_changes_to_changelog(self, producer: ProducerClient, undelivered: list[str]) -> None:
        """Send each changed key of the store to its changelog.

        `changelog_position` is known when all is delivered, or `undelivered` says why it was not.
        Raises a client's error, translated to the error that selects the recovery.
        """
        try:
            self._send_changes(producer, undelivered)
        except Exception as error:
            if isinstance(error, ChangeTooLarge):
                raise ChangeTooLarge(
                    error.topic, error.size, f"{error}{self._describe_largest_change(error.size)}"
                ) from error
            if is_too_large(error):
                size = max(self._measure_changes(), default=0)
                message = f"changelog {self.changelog}{self._describe_largest_change(0)}"
                raise ChangeTooLarge(self.changelog.topic, size, message) from error
            action = f"changelog {self.changelog}{self._describe_largest_change(_LARGE_BYTES)}"
            recovery = translate_produce_error(error, action, self.changelog.topic)
            if recovery is None:
                raise
            raise recovery from error

    def _measure_changes(self) -> list[int]:
        """Return the bytes of each change of the transaction, key and value."""
        return [len(key) + len(value or b"") for key, value, _ in self.store.drain_writes()]

    def _describe_largest_change(self, min_bytes: int) -> str:
        """Describe the largest change of the transaction if it has `min_bytes` at least."""
        sizes = self._measure_changes()
        if max(sizes, default=0) < min_bytes:
            return ""
        key, _, timestamp_ms = self.store.drain_writes()[sizes.index(max(sizes))]
        return (
            f", whose largest change has {max(sizes)} bytes: key {quote_value(key)} of store "
            f"{self.store.name!r}, by a record of timestamp {timestamp_ms}"
        )

    def _send_changes(self, producer: ProducerClient, undelivered: list[str]) -> None:
        """Produce the changed entries of the store, with a delivery report on the last one."""
        topic, partition = self.changelog
        entries = self.store.drain_writes()
        if self.is_source_topic:
            return
        last = len(entries) - 1
        changelog_headers = self.store.changelog_headers
        headers = (
            None if changelog_headers is None else list(changelog_headers)
        )  # confluent-kafka takes no tuple
        for index, (key, value, timestamp_ms) in enumerate(entries):
            # A report on the last record alone: delivery is in order, and reports are not free.
            report = None
            if index == last:
                report = add_offset_tracking(
                    _create_position_updating_report(self, undelivered), producer.delivered_offsets
                )
            # librdkafka takes 0 for no timestamp and writes the current time; a negative one is
            # written as it is, and replayed as 0.
            time_ms = timestamp_ms or NO_TIME
            record_headers = None if value is None else headers
            try:
                producer.produce(
                    topic, value, key, partition, report, None, time_ms, record_headers
                )
            except BufferError:
                producer.wait_for_queue_room()
                producer.produce(
                    topic, value, key, partition, report, None, time_ms, record_headers
                )


def _create_position_updating_report(
    store: LoggedStore, undelivered: list[str]
) -> Callable[[Any, Any], None]:
    """Return a delivery report that sets the store's position or notes why nothing was delivered.

    It refers to nothing of the task: a producer keeps the reports of what it could not deliver, and
    would keep itself alive through the task.
    """

    def update_position(error: Any, message: Any) -> None:
        if error is not None:
            undelivered.append(str(error))
        elif message.offset() < store.changelog_position:
            # Also where the broker took the record for a duplicate and returned no offset.
            undelivered.append(
                f"{store.changelog} went back from {store.changelog_position} to {message.offset()}"
            )
        else:
            store.changelog_position = store.committed_end = message.offset() + 1

    return update_position
