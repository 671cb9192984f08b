"""Records of a log that this broker can't read: of a type, or a version of a value, that it lacks.

They are no damage: a newer broker has written them, or real Kafka for a kind of group that this one
doesn't have. They stay in the log as they are (compaction keeps the last record of each key,
whatever it says), they are counted, and reported once the log is loaded. Then, as long as one
stands in the log:

- A value of an unknown version: what older records have said of its key is no longer so. Whoever
  it belongs to, a group or a transactional id, is refused with COORDINATOR_NOT_AVAILABLE (15): to
  answer from half of what the log says would give wrong offsets, or fence nobody, and to write
  would put a record in the place of one that has not been understood.
- A record of an unknown type: it says that its group is of another kind, and takes the name.

Kafka 4.3 passes over an unknown type, in `__transaction_state` an unknown version, too; in
`__consumer_offsets` that makes the whole partition refuse with NOT_COORDINATOR (16).
Source: CoordinatorLoaderImpl.java, TransactionStateManager.scala.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.shard.records import Reader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """`version` None: the type is unknown, else the version is. `name`: the group or transactional
    id that the key begins with, as all of Kafka's do; "" if it has none."""

    kind: int
    version: int | None
    name: str
    offset: int

    def __str__(self) -> str:
        if self.version is None:
            return f"type {self.kind}"
        return f"type {self.kind}, version {self.version} of its value"


class UnknownRecords:
    """Those of one log that count still: the last record of each key."""

    def __init__(self, shard_name: str) -> None:
        self._shard_name = shard_name
        self._by_key: dict[bytes, UnknownRecord] = {}
        self._names: Counter[tuple[str, bool]] = Counter()  # True: a known type

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: bytes, version: int | None, offset: int) -> None:
        """This record is the last of its key, and can't be read."""
        self.supersede(key)
        reader = Reader(key)
        kind = reader.int16()
        try:
            name = reader.string()
        except ValueError:
            name = ""
        self._by_key[key] = UnknownRecord(kind, version, name, offset)
        self._names[name, version is not None] += 1

    def supersede(self, key: bytes) -> None:
        """The last record of this key is another one, which can be read; or a tombstone."""
        found = self._by_key.pop(key, None)
        if found is not None:
            self._names[found.name, found.version is not None] -= 1

    def forget(self) -> None:
        self._by_key.clear()
        self._names.clear()

    def has(self, name: str) -> bool:
        """The log says something of this group or transactional id that can't be read."""
        return self._names[name, True] > 0 or self._names[name, False] > 0

    def is_of_unknown_kind(self, name: str) -> bool:
        """The log has records of an unknown type for this name."""
        return self._names[name, False] > 0

    def check_readable(self, name: str) -> None:
        """Refuses with 15 if what the log says of this name can't be read whole."""
        if self._names and self._names[name, True] > 0:
            raise Refused(
                Code.COORDINATOR_NOT_AVAILABLE,
                f"{self._shard_name} has records of {name} that a newer broker wrote",
            )

    def report(self) -> None:
        """One warning for each type and version, with the first offset of those that count."""
        found: dict[str, list[UnknownRecord]] = {}
        for each in self._by_key.values():
            found.setdefault(str(each), []).append(each)
        for what, records in found.items():
            logger.warning(
                "%s: records of %s: %d, the first at offset %d. They are kept, but can't be read: a"
                " newer broker wrote them, or they are of a kind of group that this one lacks",
                *(self._shard_name, what, len(records), min(each.offset for each in records)),
            )
