"""A store's disk on RocksDB, through rocksdict in raw mode: the only file that imports it.

Data are in the default column family. The checkpoint is in the column family `offsets`, as KIP-1035
has it: the changelog position as int64, big-endian, beside the changelog's topic id. Both go into
the write batch that carries the last of the data, so they can't be ahead of it. The write-ahead log
is on and not synced: `kill -9` loses nothing, a power cut loses a suffix, and the checkpoint goes
back with the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rocksdict import Options, Rdict, WriteBatch

from state.errors import DirectoryLocked, StateError
from state.store import Checkpoint

_POSITION = b"position"
_TOPIC_ID = b"topic-id"
_STREAM_TIME = b"stream-time"
_BATCH_KEYS_MAX = 5_000
"""rocksdict's `write` holds the interpreter lock: so many keys take some milliseconds."""


class RocksDisk:
    """One RocksDB database in a directory of its own.

    Raises DirectoryLocked if another handle has it open, StateError if it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        families = {"default": Options(raw_mode=True), "offsets": Options(raw_mode=True)}
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._database: Any = Rdict(str(self._path), options, column_families=families)
        except OSError as error:
            raise StateError(f"state directory {self._path} can't be written: {error}") from error
        except Exception as error:
            if "LOCK" in str(error) or "lock hold" in str(error):
                raise DirectoryLocked(f"{self._path} is open elsewhere: {error}") from error
            raise StateError(f"the store in {self._path} can't be opened: {error}") from error
        self._offsets = self._database.get_column_family("offsets")
        self._offsets_handle = self._database.get_column_family_handle("offsets")
        self._get = self._database.get

    def get(self, key: bytes) -> bytes | None:
        return self._get(key)  # raw mode: bytes in, bytes out

    def range(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._database.items(
            backwards=reverse, from_key=last if reverse else first
        ):
            if reverse:
                if first is not None and key < first:
                    return
                if last is not None and key >= last:
                    continue
            elif last is not None and key >= last:
                return
            yield key, value

    def approximate_count(self) -> int:
        return int(self._database.property_int_value("rocksdb.estimate-num-keys") or 0)

    def checkpoint(self) -> Checkpoint | None:
        position = self._offsets.get(_POSITION)
        if position is None:
            return None
        topic_id = self._offsets.get(_TOPIC_ID) or b""
        stream_time = self._offsets.get(_STREAM_TIME)
        return Checkpoint(
            int.from_bytes(position, "big", signed=True),
            topic_id.decode(),
            stream_time_ms=-1
            if stream_time is None
            else int.from_bytes(stream_time, "big", signed=True),
        )

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        left = len(changes)
        entries = iter(changes.items())
        while True:
            batch = WriteBatch(raw_mode=True)
            for key, value in islice(entries, _BATCH_KEYS_MAX):
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
            left -= _BATCH_KEYS_MAX
            if left <= 0:
                position = checkpoint.position.to_bytes(8, "big", signed=True)
                batch.put(_POSITION, position, self._offsets_handle)
                batch.put(_TOPIC_ID, checkpoint.topic_id.encode(), self._offsets_handle)
                if checkpoint.stream_time_ms >= 0:
                    stream_time = checkpoint.stream_time_ms.to_bytes(8, "big", signed=True)
                    batch.put(_STREAM_TIME, stream_time, self._offsets_handle)
                self._database.write(batch)
                return
            self._database.write(batch)

    def delete_range(self, first: bytes, last: bytes) -> None:
        self._database.delete_range(first, last)

    def load(self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: Checkpoint) -> None:
        self.write(dict(changes), checkpoint)

    def loaded(self) -> None:
        """It is: `write` goes through the write-ahead log."""

    def clear(self) -> None:
        self.close()
        Rdict.destroy(str(self._path))
        self._open()

    def close(self) -> None:
        # Every handle keeps the database, and RocksDB's lock, alive.
        del self._get, self._offsets_handle
        self._offsets.close()
        self._database.close()
