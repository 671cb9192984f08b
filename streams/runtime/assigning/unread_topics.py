"""Warn of repartition topics that a former version has left with records that nobody reads.

A version that renames or removes such a topic leaves what is in transit there: the offsets of its
inputs are committed, so that the records are in no result. That is said when a group first gets its
tasks. Markers and aborted records have offsets too, so the first committed record is looked for.
"""

from __future__ import annotations

import logging
from collections import Counter
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
_LOOKS_MAX = 5
"""The assignments in which it is looked for, where the ones before did not find it out."""


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
        self._has_unread: dict[str, bool] = {}
        """This holds by topic whether it has unread records, as far as that was found out."""
        self._look_counts = Counter[str]()
        self._looks_left = _LOOKS_MAX

    def warn_once(self, existing_counts: Mapping[str, int], read_topics: Collection[str]) -> None:
        """Warn of topics with unread records, unless that was done.

        `existing_counts` are the partition counts of all topics, `read_topics` those that the
        topology reads. Where it is not known now, the next call looks again, a few times: each may
        keep the group waiting for as long as one search takes.
        """
        if not self._looks_left:
            return
        left = sorted(
            topic
            for topic in existing_counts.keys() - {*read_topics}
            if topic.startswith(self._prefix) and topic.endswith(_REPARTITION)
        )
        try:
            unknown = self._look_at_topics(left, existing_counts) if left else []
        except (OutcomeUnknown, StreamsError) as error:
            log.info("it is not known whether %s has unread records: %s", format_names(left), error)
            return
        self._looks_left -= 1
        if unknown and self._looks_left:
            return
        self._looks_left = 0
        if unknown:
            log.info("it is not known whether %s has unread records", format_names(unknown))
        if unread := sorted(topic for topic, is_unread in self._has_unread.items() if is_unread):
            log.warning(
                "repartition topic %s has records of a former version that this one does not read, "
                "and that are in no result, as the offsets of their inputs are committed. Stop, "
                "and start the former version until it has read them, or give the step its former "
                "name (name='...'); delete the topic if they are not needed (docs/topology.md)",
                format_names(unread),
            )

    def _look_at_topics(self, topics: list[str], existing_counts: Mapping[str, int]) -> list[str]:
        """Look which of the topics have unread records; return those of which it is not known."""
        own = exclude_other_applications(
            topics, self._prefix, self._state_dir, self._admin.list_groups
        )
        unknown = [topic for topic in own if topic not in self._has_unread]
        # What took too long before comes last, so that it keeps nothing from the others.
        unknown.sort(key=self._look_counts.__getitem__)
        for topic in [*unknown]:
            self._look_counts[topic] += 1
            partitions = [Partition(topic, number) for number in range(existing_counts[topic])]
            committed = self._fetch_committed_offsets(partitions).offsets
            offsets = {p: held.offset for p, held in committed.items()}
            found = self._search.probe_for_committed_record(partitions, offsets)
            if found is None:
                break
            self._has_unread[topic] = found
            unknown.remove(topic)
        return unknown
