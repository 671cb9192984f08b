"""Replica: a copy of a whole topic by key, which one thread writes and any other reads.

It takes part in no transaction: what is read of it is what the topic had when it was read last. On
disk a value is as in a key-value store, the record's timestamp before it.
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
    """See the module. `disk` is its own."""

    def __init__(self, name: str, disk: Disk, codecs: Codecs) -> None:
        self.name = name
        self._disk = disk
        self._codecs = codecs

    def checkpoint(self) -> Checkpoint | None:
        """Up to where the topic is in it, by partition; None before the first write."""
        return self._disk.checkpoint()

    def apply(self, records: Iterable[Copied], checkpoint: Checkpoint) -> None:
        """Take in records, those of a partition in their order; `checkpoint` is true after them."""
        changes = {
            key: None if value is None else pack_time(max(timestamp_ms, 0)) + value
            for _, _, key, value, timestamp_ms in records
        }
        self._disk.write(changes, checkpoint)

    def view(self) -> KeyValueStore[Any, Any]:
        """A store to read from, for one thread. Nothing is to be written to it."""
        return KeyValueStore(self.name, self._disk, self._codecs)

    def clear(self) -> None:
        """Forget everything: it is copied anew."""
        self._disk.clear()

    def close(self) -> None:
        """Nobody reads it any more. One in which damage was found is emptied: the next to open it
        copies it anew."""
        try:
            self._disk.check()
        except Corrupt as damage:
            log.warning("%s. It will be copied anew", damage)
            self._disk.clear()
        self._disk.close()
