"""Serialise values as they are written, to find the record whose value the serde refuses.

A store serialises objects at the commit (`state.transaction`), when it is too late to say which
record wrote one. Where a commit has failed for that, the runtime rolls it back and has the store
serialise early: then an entry keeps the bytes of its value beside the object, a write that the
serde refuses raises StoreSerdeError and leaves the entry as it was, and an object that was changed
in place is serialised again when its record is done (`serialize_mutated_objects`). Kafka Streams
serialises at every write.

Meanwhile the store keeps nothing in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from state.entry import SCALARS, StoreEntry
from state.errors import StoreSerdeError
from state.shown_values import quote_value

_TIMESTAMP_BYTES = 8


class ChangeLimit(NamedTuple):
    """Limits the bytes of a key with its value, by a store's changelog; `reason` says which."""

    bytes_max: int
    reason: str


class RefusedChange(NamedTuple):
    """Describes an object that was changed in place to a value that the serde refuses."""

    key: Any
    value: Any
    error: StoreSerdeError


class EarlySerializedEntries:
    """Keeps the entries of one store and one transaction, serialised as they are written.

    `serialize` raises StoreSerdeError; `on_refused` is called before that. `limit`, if there is
    one, is that of the store's changelog.
    """

    def __init__(
        self,
        store_name: str,
        serialize: Callable[[Any], bytes],
        deserialize: Callable[[bytes], Any],
        on_refused: Callable[[], object],
        limit: ChangeLimit | None = None,
    ) -> None:
        self.deserialize = deserialize
        self.on_refused = on_refused
        self._store_name = store_name
        self._limit = limit
        self._serialize = serialize
        self._handed_out: dict[EarlySerializedEntry, None] = {}
        """Entries whose objects may have been changed in place since they were serialised last."""

    def create_entry(
        self, key: Any, timestamp_ms: int, stored_value: bytes | None, key_bytes: int = 0
    ) -> EarlySerializedEntry:
        """Create the entry of a key from its bytes on disk, as one that nobody has written yet.

        `key_bytes` is the size of the key in the changelog.
        """
        return EarlySerializedEntry(self, key, timestamp_ms, stored_value, key_bytes)

    def serialize(self, value: Any, key_bytes: int = 0) -> bytes:
        """Return the bytes of `value`, or call `on_refused` and raise StoreSerdeError.

        Also for one that, with its key, is larger than the changelog takes.
        """
        try:
            encoded = self._serialize(value)
        except StoreSerdeError:
            self.on_refused()
            raise
        limit, size = self._limit, len(encoded) + key_bytes
        if limit is not None and size > limit.bytes_max:
            self.on_refused()
            raise StoreSerdeError(
                f"store {self._store_name!r} can't keep {quote_value(value)}: it has {size} bytes, "
                f"and its changelog takes {limit.bytes_max} with the key ({limit.reason}): keep "
                "less in one value, or raise that setting"
            )
        return encoded

    def remember_handed_out(self, entry: EarlySerializedEntry) -> None:
        """Note that the caller has the object of `entry`, and may change it in place."""
        self._handed_out[entry] = None

    def serialize_mutated_objects(self) -> list[RefusedChange]:
        """Serialise the objects that the last record may have changed; return the refused ones.

        A value that the serde refuses is taken back, so that the entry has its last value that
        could be serialised.
        """
        entries, self._handed_out = self._handed_out, {}
        found = []
        for entry in entries:
            changed = entry.live
            try:
                entry.serialize_live_object()
            except StoreSerdeError as error:
                entry.live = None
                found.append(RefusedChange(entry.key, changed, error))
        return found


class EarlySerializedEntry(StoreEntry[Any, Any]):
    """Represents an entry whose value is serialised when it is set.

    A value that the serde refuses leaves the entry as it was.
    """

    __slots__ = ("_entries", "encoded", "is_written", "key_bytes", "live")

    def __init__(
        self,
        entries: EarlySerializedEntries,
        key: Any,
        timestamp_ms: int,
        stored: bytes | None,
        key_bytes: int,
    ) -> None:
        self.key_bytes = key_bytes
        self.key, self.timestamp_ms, self.stored, self.used = key, timestamp_ms, stored, 0
        self.encoded = stored[_TIMESTAMP_BYTES:] if stored else None
        self.live: Any = None
        """The object that was set or handed out last; None: only its bytes are known."""
        self.is_written = False
        self._entries = entries

    @property
    def value(self) -> Any:
        """Return the value; an object that can be changed in place is serialised again later."""
        if self.live is None and self.encoded is not None:
            self.live = self._entries.deserialize(self.encoded)
        if type(self.live) not in SCALARS:
            self._entries.remember_handed_out(self)
        return self.live

    @value.setter
    def value(self, value: Any) -> None:
        self.live = None  # the refused object may be the one that was there, changed in place
        self.encoded = None if value is None else self._entries.serialize(value, self.key_bytes)
        self.live, self.is_written = value, True
        if type(value) not in SCALARS:
            self._entries.remember_handed_out(self)

    def serialize_live_object(self) -> None:
        """Serialise the value again, which may have changed in place; mark it written if it has.

        Raises StoreSerdeError.
        """
        if self.live is None or type(self.live) in SCALARS:
            return
        encoded = self._entries.serialize(self.live, self.key_bytes)
        if encoded != self.encoded:
            self.encoded, self.is_written = encoded, True


def serialize_written_entries(
    overlay: Mapping[bytes, StoreEntry[Any, Any]],
) -> dict[bytes, StoreEntry[Any, Any]]:
    """Serialise changed objects again, and return the written entries with bytes as their values.

    Raises StoreSerdeError for an object that was changed in place by a record that had not read it
    from the store.
    """
    written = {}
    for disk_key, entry in overlay.items():
        if not isinstance(entry, EarlySerializedEntry):
            written[disk_key] = entry  # the deletion of an expired entry
            continue
        entry.serialize_live_object()
        if entry.is_written:
            written[disk_key] = StoreEntry(
                entry.key, entry.encoded, entry.timestamp_ms, entry.stored
            )
    return written
