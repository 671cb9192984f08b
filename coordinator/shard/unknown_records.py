"""Track records of a log that this broker can't read: of an unknown type, or value version.

They are no damage: a newer broker has written them, or real Kafka for a kind of group that this one
doesn't have. They stay in the log as they are (compaction keeps the last record of each key,
whatever it says), they are counted, and reported once the log is loaded. Then, as long as one
stands in the log:

- A value of an unknown version: what older records have said of its key is no longer so. Whoever
  it belongs to, a group or a transactional id, is refused with COORDINATOR_NOT_AVAILABLE: to
  answer from half of what the log says would give wrong offsets, or fence nobody, and to write
  would put a record in the place of one that has not been understood.
- A record of an unknown type: it says that its group is of another kind, and takes the name.

Kafka 4.3 passes over an unknown type, in `__transaction_state` an unknown version, too; in
`__consumer_offsets` that makes the whole partition refuse with NOT_COORDINATOR.
Source: CoordinatorLoaderImpl.java, TransactionStateManager.scala.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.shard.record_fields import FieldReader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """Represents a record that can't be read: its type, value version, owner and offset.

    `version` None: the type is unknown, else the version is. `name`: the group or transactional id
    that the key begins with, as all of Kafka's do; "" if it has none.
    """

    record_type: int
    version: int | None
    name: str
    offset: int

    def __str__(self) -> str:
        if self.version is None:
            return f"type {self.record_type}"
        return f"type {self.record_type}, version {self.version} of its value"


class UnknownRecordIndex:
    """Keeps the unreadable records of one log that still count: the last record of each key."""

    def __init__(self, shard_name: str) -> None:
        self._shard_name = shard_name
        self._by_key: dict[bytes, UnknownRecord] = {}
        self._counts_by_name: Counter[tuple[str, bool]] = (
            Counter()
        )  # (name, whether the type is known)

    def __len__(self) -> int:
        return len(self._by_key)

    def add_record(self, key: bytes, version: int | None, offset: int) -> None:
        """Note that the record at an offset is the last one of its key and can't be read."""
        self.remove_superseded(key)
        reader = FieldReader(key)
        record_type = reader.read_int16()
        try:
            name = reader.read_string()
        except ValueError:
            name = ""
        self._by_key[key] = UnknownRecord(record_type, version, name, offset)
        self._counts_by_name[name, version is not None] += 1

    def remove_superseded(self, key: bytes) -> None:
        """Remove the record of a key, as a later record of that key can be read."""
        found = self._by_key.pop(key, None)
        if found is not None:
            self._counts_by_name[found.name, found.version is not None] -= 1

    def clear_records(self) -> None:
        """Remove all records, as the log is to be loaded anew or belongs to another broker."""
        self._by_key.clear()
        self._counts_by_name.clear()

    def has_records_of(self, name: str) -> bool:
        """Return whether the log has unreadable records of this group or transactional id."""
        return self._counts_by_name[name, True] > 0 or self._counts_by_name[name, False] > 0

    def is_of_unknown_kind(self, name: str) -> bool:
        """Return whether the log has records of an unknown type for this name."""
        return self._counts_by_name[name, False] > 0

    def check_readable(self, name: str) -> None:
        """Raise Refused if a value of this group or transactional id is of an unknown version.

        Raises Refused: COORDINATOR_NOT_AVAILABLE.
        """
        if self._counts_by_name and self._counts_by_name[name, True] > 0:
            raise Refused(
                Code.COORDINATOR_NOT_AVAILABLE,
                f"{self._shard_name} has records of {name} that a newer broker wrote",
            )

    def log_warnings(self) -> None:
        """Log a warning for each unknown type and version, with the first offset of each."""
        records_by_kind: dict[str, list[UnknownRecord]] = {}
        for each in self._by_key.values():
            records_by_kind.setdefault(str(each), []).append(each)
        for kind, records in records_by_kind.items():
            logger.warning(
                "%s: records of %s: %d, the first at offset %d. They are kept, but can't be read: a"
                " newer broker wrote them, or they are of a kind of group that this one lacks",
                *(self._shard_name, kind, len(records), min(each.offset for each in records)),
            )
