"""Copy whole topics by key for global tables, by one writing and any number of reading threads.

A replica takes part in no transaction: it has what the topic had when it was read last. On disk a
value is as in a key-value store, the record's timestamp before it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from state.errors import Corrupt
from state.key_value import KeyValueStore
from state.keys import pack_time
from state.store import Checkpoint, Disk
from state.transaction import Codecs

log = logging.getLogger(__name__)

Copied = tuple[int, int, bytes, bytes | None, int]
"""A record of the topic: partition, offset, key, value, timestamp in ms."""


class Replica:
    """Keeps the latest value of each key of a topic on a disk of its own."""

    def __init__(self, name: str, disk: Disk, codecs: Codecs) -> None:
        self.name = name
        self._disk = disk
        self._codecs = codecs

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the copy, or None before the first write.

        Its `positions` are the offsets up to which each partition was copied.
        """
        return self._disk.checkpoint()

    def apply(self, records: Iterable[Copied], checkpoint: Checkpoint) -> None:
        """Write records of the topic, in order in a partition, and the checkpoint after them."""
        changes = {
            key: None if value is None else pack_time(max(timestamp_ms, 0)) + value
            for _, _, key, value, timestamp_ms in records
        }
        self._disk.write(changes, checkpoint)

    def view(self) -> KeyValueStore[Any, Any]:
        """Return a key-value store for one thread that reads this copy.

        Nothing may be written to it.
        """
        return KeyValueStore(self.name, self._disk, self._codecs)

    def clear(self) -> None:
        """Delete all data, so that the topic is copied anew."""
        self._disk.clear()

    def close(self) -> None:
        """Release the disk, after all readers have stopped.

        If damage was found the disk is cleared: the next to open it copies the topic anew.
        """
        try:
            self._disk.check()
        except Corrupt as damage:
            log.warning("%s. It will be copied anew", damage)
            self._disk.clear()
        self._disk.close()
