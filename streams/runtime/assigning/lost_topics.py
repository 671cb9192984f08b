"""Find, while tasks fail, that an internal topic was deleted, or recreated with other partitions.

Brokers only say of it that they don't know a topic or a partition, as they do of a topic that is
new. So a failure that repeats would look like one that passes, until `task_timeout_ms`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from streams.errors import OutcomeUnknown, StreamsError, TopologyError
from streams.ledger import ledger_topic
from streams.runtime.assigning.internal_topics import list_changelogs, list_internal_topics
from streams.runtime.assigning.task_lags import FetchCommittedOffsets
from streams.runtime.assigning.wrong_counts import FollowedSources, explain_wrong_count
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.clients.missing_topics import explain_missing_topics
from streams.topology.build import Topology
from streams.topology.resolve import resolve_topology

log = logging.getLogger(__name__)

_CHECK_INTERVAL_S = 1.0
_MISSING_S = 2.0
"""The seconds after which an internal topic that brokers do not have is taken for deleted: one of
several brokers may hear late of a topic that the group's leader has just created."""


def derive_internal_counts(
    topology: Topology, source_counts: Mapping[str, int], existing_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return how many partitions each repartition topic and each changelog needs.

    `source_counts` are the counts of all source topics, internal ones included. A topic is left out
    whose count follows from topics that match a pattern, where there are none. `existing_counts`
    are those of all topics: a changelog keeps the partitions of tasks that went with such a topic.
    """
    wanted = {t: source_counts[t] for t in topology.repartition_topics if t in source_counts}
    for sub in topology.subtopologies:
        if not sub.sources or not sub.sources.keys() <= source_counts.keys():
            continue  # no topic matches a pattern
        for store in (s for s in sub.stores if s.logged and s.source_topic is None):
            changelog = topology.restore_topic_of(store.name)
            wanted[changelog] = max(source_counts[topic] for topic in sub.sources)
            if sub.reads_patterns:
                wanted[changelog] = max(wanted[changelog], existing_counts.get(changelog, 0))
    return wanted


def check_internal_counts(
    topology: Topology,
    existing_counts: Mapping[str, int],
    wanted: Mapping[str, int],
    admin: AdminClient,
    fetch_committed_offsets: FetchCommittedOffsets,
) -> None:
    """Raise StreamsError with the likely reason for an internal topic that has a wrong count.

    One that does not exist has none. All inputs exist.
    """
    for topic, partitions in wanted.items():
        if existing_counts.get(topic, partitions) != partitions:
            raise StreamsError(
                explain_wrong_count(
                    topic,
                    (existing_counts[topic], partitions),
                    {each: existing_counts[each] for each in topology.input_topics},
                    _find_followed_sources(topology, topic, existing_counts),
                    admin,
                    fetch_committed_offsets,
                )
            )


def _find_followed_sources(
    topology: Topology, changelog: str, existing_counts: Mapping[str, int]
) -> FollowedSources | None:
    """Return the store of a changelog with the sources of its sub-topology; None for no changelog.

    A source that does not exist has no partitions.
    """
    spec = list_changelogs(topology).get(changelog)
    if spec is None:
        return None
    (sub,) = [s for s in topology.subtopologies if spec.name in {each.name for each in s.stores}]
    counts = {topic: existing_counts.get(topic, 0) for topic in sub.sources}
    return FollowedSources(spec.name, counts)


class LostTopicCheck:
    """Checks that the internal topics which tasks need are still there, for one thread.

    Call it after failures while the thread has tasks: before, the topics may not be created yet.
    """

    def __init__(
        self,
        topology: Topology,
        admin: AdminClient,
        fetch_committed_offsets: FetchCommittedOffsets,
        monotonic_s: Callable[[], float],
        *,
        has_ledger: bool = False,
    ) -> None:
        self._topology = topology
        self._admin = admin
        self._fetch_committed_offsets = fetch_committed_offsets
        self._monotonic_s = monotonic_s
        self._kinds = list_internal_topics(topology, has_ledger=has_ledger)
        self._check_at_s = 0.0
        self._missing_since_s: dict[str, float] = {}

    def check_if_due(self) -> None:
        """Check the topics, by one request a second at most.

        Where no broker answers nothing is known, and they are checked another time.
        Raises: StreamsError for a topic that was not there for `_MISSING_S`, or that has another
        number of partitions than the tasks; AuthorizationError where it may not be described.
        """
        now_s = self._monotonic_s()
        if now_s < self._check_at_s or not self._kinds:
            return
        self._check_at_s = now_s + _CHECK_INTERVAL_S
        try:
            existing = self._admin.fetch_partition_counts()
            wanted = self._derive_counts(existing)
            self._raise_if_missing_for_long(existing, wanted, now_s)
            if wanted is not None:
                check_internal_counts(
                    self._topology, existing, wanted, self._admin, self._fetch_committed_offsets
                )
        except OutcomeUnknown as error:
            log.info("internal topics are checked another time: %s", error)

    def _raise_if_missing_for_long(
        self,
        existing_counts: Mapping[str, int],
        wanted: Mapping[str, int] | None,
        now_s: float,
    ) -> None:
        before = self._missing_since_s
        missing = self._kinds.keys() - existing_counts
        if wanted is not None and self._topology.patterns:
            missing &= {*wanted, ledger_topic(self._topology.application_id)}
        self._missing_since_s = {topic: before.get(topic, now_s) for topic in missing}
        lost = sorted(
            t for t, since_s in self._missing_since_s.items() if now_s - since_s >= _MISSING_S
        )
        if lost:
            # One that may not be described is not listed either.
            self._admin.check_topic_rights(dict.fromkeys(lost, ("Describe",)))
            raise StreamsError(explain_missing_topics(lost, self._kinds))

    def _derive_counts(self, existing_counts: Mapping[str, int]) -> dict[str, int] | None:
        """Return the partitions that internal topics need; None where the leader tells more."""
        try:
            topology = resolve_topology(self._topology, existing_counts)
            inputs = {t: existing_counts[t] for t in topology.input_topics if t in existing_counts}
            if len(inputs) < len(set(topology.input_topics)):
                return None
            source_counts = topology.derive_partition_counts(inputs)
        except TopologyError:
            return None
        return derive_internal_counts(topology, source_counts, existing_counts)
