"""Warn of repartition topics that a former version has left with records that nobody reads.

A version that renames or removes such a topic leaves what is in transit there: the offsets of its
inputs are committed, so that the records are in no result. That is said when a group first gets its
tasks. Markers and aborted records have offsets too, so the first committed record is looked for.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.assigning.leftover_stores import exclude_other_applications
from streams.runtime.assigning.task_lags import FetchCommittedOffsets
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.topology.compatibility import format_names

log = logging.getLogger(__name__)

_REPARTITION = "-repartition"


class UnreadTopicCheck:
    """Looks once for repartition topics that are not the topology's and have unread records."""

    def __init__(
        self,
        application_id: str,
        state_dir: Path,
        admin: AdminClient,
        fetch_committed_offsets: FetchCommittedOffsets,
        search: CommittedRecordSearch,
    ) -> None:
        self._prefix = f"{application_id}-"
        self._state_dir = state_dir
        self._admin = admin
        self._fetch_committed_offsets = fetch_committed_offsets
        self._search = search
        self._is_done = False

    def warn_once(self, existing_counts: Mapping[str, int], known_topics: Collection[str]) -> None:
        """Warn of topics with unread records, unless that was done.

        `existing_counts` are the partition counts of all topics, `known_topics` those that the
        topology reads or writes. Where it is not known now, the next call looks again.
        """
        if self._is_done:
            return
        left = sorted(
            topic
            for topic in existing_counts.keys() - {*known_topics}
            if topic.startswith(self._prefix) and topic.endswith(_REPARTITION)
        )
        try:
            unread = self._find_unread(left, existing_counts) if left else []
        except (OutcomeUnknown, StreamsError) as error:
            log.info("it is not known whether %s has unread records: %s", format_names(left), error)
            return
        if unread is None:
            return
        self._is_done = True
        if unread:
            log.warning(
                "repartition topic %s has records of a former version that this one does not read, "
                "and that are in no result, as the offsets of their inputs are committed. Stop, "
                "and start the former version until it has read them, or give the step its former "
                "name (name='...'); delete the topic if they are not needed (docs/topology.md)",
                format_names(unread),
            )

    def _find_unread(
        self, topics: list[str], existing_counts: Mapping[str, int]
    ) -> list[str] | None:
        """Return those of the topics that have unread records; None if it is not known yet."""
        own = exclude_other_applications(
            topics, self._prefix, self._state_dir, self._admin.list_groups
        )
        unread = []
        for topic in own:
            partitions = [Partition(topic, number) for number in range(existing_counts[topic])]
            committed = self._fetch_committed_offsets(partitions).offsets
            offsets = {p: held.offset for p, held in committed.items()}
            found = self._search.probe_for_committed_record(partitions, offsets)
            if found is None:
                return None
            if found:
                unread.append(topic)
        return unread
