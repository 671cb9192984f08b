"""Reconstruct a global table as it was when it had been copied up to certain offsets.

A worker's copy has of each key the last record below these offsets. They are fixed by the ledger,
so what a look-up has found is known, as long as the topic's records are. A compacted topic may have
lost some: of a key of which a record is left below the offsets, the last one is what the copy had
(`streams.spark.stores.compaction` has the argument); of one of which none is left it is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from streams.common.topic_id_hashes import hash_topic_ids
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.graph.nodes import GlobalTableSpec
from streams.spark.reconciliation.derivation.ledger_order import LedgerOrder, decode_step_lookups
from streams.spark.source.broker_access import BrokerAccess, translate_unanswered_requests
from streams.spark.source.fetching import RawBatch, fetch_batches
from streams.spark.source.options import IsolationLevel
from streams.spark.source.ranges import OffsetRange
from streams.spark.source.removal import explain_removal
from streams.spark.stores.raw_fetch import scan_range

EndByPartition: TypeAlias = dict[int, int]
TopicIdHashes: TypeAlias = set[int]

_KEY_BYTES_SHOWN_MAX = 40
Row = tuple[bytes, int]
"""A value and its record's timestamp in ms since 1970."""


class GlobalTopicRead(Protocol):
    """Reads the topic of a global table, up to the last offset that matters."""

    def iterate_batches(self) -> Iterable[RawBatch]:
        """Yield the committed records of each partition in the order of their offsets."""

    def count_removed_offsets(self) -> int:
        """Count the offsets that compaction has removed; called after the batches were read."""


@dataclass(frozen=True, slots=True)
class BrokerTopicRead:
    """Reads `ranges` of a global table's topic from the brokers of `access`."""

    access: BrokerAccess
    ranges: Sequence[OffsetRange]
    is_compacted: bool

    def iterate_batches(self) -> Iterator[RawBatch]:
        """Yield the records. Raises StreamsError where they can't all be read."""
        for each in self.ranges:
            yield from fetch_batches(self.access, IsolationLevel.READ_COMMITTED, each)

    def count_removed_offsets(self) -> int:
        """Count the offsets that are gone, which are neither markers nor aborted records."""
        if not self.is_compacted:
            return 0
        return sum(scan_range(self.access, each).removed_count for each in self.ranges)


def plan_topic_read(
    access: BrokerAccess, topic: str, ends: Mapping[int, int], topic_id_hashes: Collection[int]
) -> BrokerTopicRead:
    """Plan the read of a global table's topic up to `ends`, by partition.

    `topic_id_hashes`: those of the topics that were copied. Raises ConfigError if the first records
    are gone, or the topic is another one of the same name.
    """
    admin = access.create_admin()
    partitions = [Partition(topic, number) for number in ends]
    with translate_unanswered_requests(f"the topic {topic} can't be asked for"):
        topic_ids = admin.fetch_topic_ids([topic])
        begins = admin.fetch_earliest_offsets(partitions)
        settings = admin.fetch_topic_settings([topic])[topic]
    known = hash_topic_ids(topic_ids)
    if known and any(each != known[topic] for each in topic_id_hashes):
        raise ConfigError(
            f"the topic {topic!r} of a global table was deleted and created again: what the former "
            "one had is not known"
        )
    for partition, first in begins.items():
        if first > 0:
            raise ConfigError(
                f"what a global table had is not known: {explain_removal(admin, partition, first)}"
            )
    topic_id = topic_ids[topic] if known else None
    ranges = [OffsetRange(topic, number, 0, end, topic_id) for number, end in sorted(ends.items())]
    return BrokerTopicRead(access, ranges, "compact" in settings["cleanup.policy"])


def find_ends_seen_by_steps(
    order: LedgerOrder, steps: Collection[str]
) -> tuple[EndByPartition, TopicIdHashes]:
    """Find up to which offset of each partition `steps` have seen a global table, by the ledger.

    The hashes are of the ids that its topic had. Raises ConfigError where the
    ledger is damaged.
    """
    ends: dict[int, int] = {}
    topic_id_hashes: set[int] = set()
    for commits in order.values():
        for commit in commits:
            for step in commit.lookups.keys() & set(steps):
                topic_id_hash, states = decode_step_lookups(step, commit.lookups[step])
                if topic_id_hash is not None:
                    topic_id_hashes.add(topic_id_hash)
                for state in states:
                    for number, position in enumerate(state.positions):
                        ends[number] = max(ends.get(number, 0), position)
    return ends, topic_id_hashes


class GlobalTableHistory:
    """Holds all rows that a global table had, read from its topic.

    Records without a key, and those that its serdes can't read, were never in the table.
    """

    def __init__(self, table: GlobalTableSpec, read: GlobalTopicRead) -> None:
        self._table = table
        self._rows: dict[bytes, dict[int, tuple[list[int], list[Row | None]]]] = {}
        """By key and partition the offsets of its records, and the rows that they made."""
        for batch in read.iterate_batches():
            self._add_batch(batch)
        self._removed_count = read.count_removed_offsets()

    def find_row(self, key: bytes, positions: Sequence[int]) -> Row | None:
        """Return the row of a key as of the offsets up to which partitions had been copied.

        Raises ConfigError if it is not known.
        """
        found: list[Row | None] = []
        for number, (offsets, rows) in self._rows.get(key, {}).items():
            below = bisect_left(offsets, positions[number]) if number < len(positions) else 0
            if below:
                found.append(rows[below - 1])
        if len(found) > 1:
            raise self._create_unknown_row_error(
                key, "it has records in several partitions, and their order is not known"
            )
        if not found and self._removed_count:
            raise self._create_unknown_row_error(
                key,
                f"{self._removed_count} records were removed by compaction, and none of the key "
                "is left that is old enough",
            )
        return found[0] if found else None

    def _add_batch(self, batch: RawBatch) -> None:
        """Add the records of a batch that the table has taken."""
        store = self._table.store
        columns = (batch.keys, batch.values, batch.offsets, batch.timestamps_ms)
        for key, value, offset, timestamp_ms in zip(*columns, strict=True):
            if key is None:
                continue
            try:  # as `RecordCopier`: what can't be read is skipped
                store.key.deserialize(key)
                if value is not None:
                    store.value.deserialize(value)
            except Exception:  # nosec B112
                continue
            offsets, rows = self._rows.setdefault(key, {}).setdefault(batch.partition, ([], []))
            offsets.append(offset)
            rows.append(None if value is None else (value, max(timestamp_ms, 0)))

    def _create_unknown_row_error(self, key: bytes, reason: str) -> ConfigError:
        """Create the error that explains why a global table's row is not known at the replay."""
        return ConfigError(
            f"what global table {self._table.store.name!r} had of the key "
            f"{key[:_KEY_BYTES_SHOWN_MAX].hex(' ')} (hex) is not known: {reason}"
        )
