"""Warn of tables that may keep rows whose deletions nobody read before they were compacted away.

A table with a changelog of its own goes on from its committed offset, and its store has the rows
below that. A compacted topic keeps a deletion for `delete.retention.ms` after the cleaner has seen
it, and then nothing tells of it any more: a row that was deleted while the application was stopped
for longer stays, and so does what was made from it. (Global tables, and stores that are restored,
are filled anew then.)

Nothing says which deletions there were. So a table is named if both hold:

    its offset was committed so long ago             by the commit's number, which is a wall clock
    there are older offsets that it has not read     by the timestamps of the records that are left
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams.command_lines import format_command
from streams.common.host import Host
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, StreamsError
from streams.graph.nodes import ProcessorNode, SourceNode
from streams.runtime.changelogs.changelog import tombstone_retention_ms
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.topology.build import Topology

log = logging.getLogger(__name__)

_AGE_MIN_MS = 1_000
"""An offset that was committed less long ago is not looked at: brokers would be asked at each
rollback, and no topic keeps deletions for so short a time."""
_POLICY = "cleanup.policy"


class MissedDeletionCheck:
    """Finds the tables of a topology whose topic may have lost deletions that they have not read.

    Kafka Streams has no counterpart.
    """

    def __init__(self, topology: Topology, admin: AdminClient, host: Host) -> None:
        self._stores_by_topic = list_table_stores_by_topic(topology)
        self._admin = admin
        self._host = host
        self._warned: set[Partition] = set()

    def warn_of_missed_deletions(self, committed: Mapping[Partition, OffsetAndMetadata]) -> None:
        """Warn once of each table that may have missed deletions behind its committed offset.

        Raises: OutcomeUnknown where brokers don't answer.
        """
        ages_ms = self._measure_offset_ages_ms(committed)
        if not ages_ms:
            return
        topics = sorted({partition.topic for partition in ages_ms})
        try:
            settings = self._admin.fetch_topic_settings(topics)
        except (AuthorizationError, StreamsError) as error:
            self._warned |= ages_ms.keys()
            log.info("for how long deletions of tables %s are kept is not known: %s", topics, error)
            return
        for topic in topics:
            kept_ms = None
            if _POLICY in settings[topic]:
                kept_ms = tombstone_retention_ms(settings[topic])
            aged = [p for p, age_ms in ages_ms.items() if p.topic == topic]
            if kept_ms is not None:
                self._warn_of_dropped_deletions(topic, kept_ms, aged, ages_ms, committed)

    def _measure_offset_ages_ms(
        self, committed: Mapping[Partition, OffsetAndMetadata]
    ) -> dict[Partition, int]:
        """Return how long ago in ms the offset of each table's partition was committed.

        Left out is what was committed a moment ago, or is warned of already.
        """
        ages_ms: dict[Partition, int] = {}
        for partition, held in committed.items():
            if partition.topic not in self._stores_by_topic or partition in self._warned:
                continue
            if (number := decode_metadata(held.metadata).commit_number) is not None:
                age_ms = self._host.now_ms() - number
                if age_ms >= _AGE_MIN_MS and held.offset > 0:
                    ages_ms[partition] = age_ms
        return ages_ms

    def _warn_of_dropped_deletions(
        self,
        topic: str,
        kept_ms: int,
        partitions: list[Partition],
        ages_ms: Mapping[Partition, int],
        committed: Mapping[Partition, OffsetAndMetadata],
    ) -> None:
        """Warn if partitions of a table's topic may have dropped deletions that were not read."""
        old = [p for p in partitions if ages_ms[p] >= kept_ms]
        if not old:
            return
        kept_from = self._admin.fetch_offsets_for_time(old, self._host.now_ms() - kept_ms)
        missed = sorted(p for p in old if kept_from[p] > committed[p].offset)
        if not missed:
            return
        self._warned |= set(missed)
        log.warning(
            "table %s may keep rows that were deleted: %s were committed %d s ago and have gone on "
            "since, and the topic keeps deletions for %d s (delete.retention.ms), so some may have "
            "been compacted away unread. If rows are wrong, start over with %s; or delete them "
            "again in the topic; and keep deletions there for longer than the application stops",
            ", ".join(map(repr, self._stores_by_topic[topic])),
            ", ".join(f"{p} at {committed[p].offset}" for p in missed),
            max(ages_ms[p] for p in missed) // 1000,
            kept_ms // 1000,
            format_command("group reset"),
        )


def list_table_stores_by_topic(topology: Topology) -> dict[str, list[str]]:
    """Return by topic the stores of the tables that are read from it, global ones left out."""
    stores: dict[str, list[str]] = {}
    for subtopology in topology.subtopologies:
        for node in subtopology.nodes:
            if isinstance(node, ProcessorNode) and node.traits.reads_table_topic:
                for parent in node.parents:
                    if isinstance(parent, SourceNode) and node.stores:
                        stores.setdefault(parent.topic, []).extend(node.stores)
    return stores
