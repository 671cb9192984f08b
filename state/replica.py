"""Copy whole topics by key for global tables, by one writing and any number of reading threads.

A replica takes part in no transaction: it has what the topic had when it was read last. On disk a
value is as in a key-value store, the record's timestamp before it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from threading import Lock
from typing import Any

from state.errors import StoreCorrupted
from state.key_value import KeyValueStore
from state.keys import pack_time
from state.state_serdes import StoreCodecs
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint

log = logging.getLogger(__name__)

CopiedRecord = tuple[int, int, bytes, bytes | None, int]
"""A record of the topic: partition, offset, key, value, timestamp in ms."""


class TopicReplica:
    """Keeps the latest value of each key of a topic on a disk of its own."""

    def __init__(self, name: str, disk: StoreDisk, codecs: StoreCodecs) -> None:
        self.name = name
        self._disk = disk
        self._codecs = codecs
        self._write_lock = Lock()
        self._applied: StoreCheckpoint | None = None
        self._has_failed = False

    def find_applied_checkpoint(self) -> StoreCheckpoint | None:
        """Return the checkpoint of what readers see now, after waiting for a write that is running.

        The same object before and after a look-up says that nothing was written meanwhile. Returns
        None before the first write of this process, and after one that failed.
        """
        if self._applied is None and not self._has_failed:
            with self._write_lock:
                return self._applied
        return self._applied

    def is_unchanged_since(self, checkpoint: StoreCheckpoint | None) -> bool:
        """Return whether nothing was written since `find_applied_checkpoint` returned this."""
        return self._applied is checkpoint

    def read_checkpoint(self) -> StoreCheckpoint | None:
        """Return the checkpoint of the copy, or None before the first write.

        Its `positions` are the offsets up to which each partition was copied.
        """
        return self._disk.read_checkpoint()

    def write_copied_records(
        self, records: Iterable[CopiedRecord], checkpoint: StoreCheckpoint
    ) -> None:
        """Write records of the topic, in order in a partition, and the checkpoint after them."""
        changes = {
            key: None if value is None else pack_time(max(timestamp_ms, 0)) + value
            for _, _, key, value, timestamp_ms in records
        }
        with self._write_lock:
            self._applied = None
            try:
                self._disk.write_changes(changes, checkpoint)
            except BaseException:
                self._has_failed = True
                raise
            self._applied = checkpoint

    def open_view(self) -> KeyValueStore[Any, Any]:
        """Return a key-value store for one thread that reads this copy.

        Nothing may be written to it.
        """
        return KeyValueStore(self.name, self._disk, self._codecs)

    def clear_all_data(self) -> None:
        """Delete all data, so that the topic is copied anew."""
        self._disk.clear_all_data()

    def close(self) -> None:
        """Release the disk, after all readers have stopped.

        If damage was found the disk is cleared: the next to open it copies the topic anew.
        """
        try:
            self._disk.raise_if_corrupted()
        except StoreCorrupted as damage:
            log.warning("%s. It will be copied anew", damage)
            self._disk.clear_all_data()
        self._disk.close()
