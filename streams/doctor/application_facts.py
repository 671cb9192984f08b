"""Fetch what the doctor looks at of one application: its group, its offsets and its topics.

Without the App its topics are those that its members have declared; while none runs, those of its
committed offsets, with the internal ones that its id and these offsets prove.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from streams.app import App
from streams.commands.internal_topics import find_internal_topics, strip_application_id
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.cluster_facts import ClusterFacts
from streams.doctor.fetched_once import fetched_once
from streams.doctor.former_counts import (
    derive_former_counts,
    list_equally_partitioned_topics,
    list_partitions_on_disk,
)
from streams.doctor.input_facts import fetch_progress
from streams.doctor.inputs import InputProgress
from streams.doctor.worker_facts import sample_workers
from streams.doctor.workers import WorkerSamples
from streams.errors import OutcomeUnknown, UserError
from streams.ledger import ledger_topic
from streams.membership.application_group import STREAMS, fetch_group_description
from streams.membership.connection import ConnectionLost
from streams.membership.group_description import GroupDescription
from streams.membership.group_offsets import fetch_group_offsets
from streams.monitoring.group_report import (
    GroupMembers,
    GroupReport,
    TopicOffsets,
    build_report,
    list_report_partitions,
)
from streams.monitoring.streams_group_members import convert_group_members
from streams.runtime.assigning.internal_topics import list_changelogs
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.declared import DeclaredTopology
from streams.topology.resolve import resolve_topology


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Holds the names of an application's topics by what they are to it.

    `changelogs` have their stores; a store that is restored from an input has none. `outputs` are
    known from the App only. `source` says where all this is known from.
    """

    source: str
    inputs: frozenset[str]
    changelogs: Mapping[str, str] = field(default_factory=dict)
    repartition: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    global_tables: frozenset[str] = frozenset()
    copartitioned: tuple[frozenset[str], ...] = ()
    ledger: str | None = None

    @property
    def internal(self) -> frozenset[str]:
        """Return the topics that the application makes itself."""
        own = self.repartition | self.changelogs.keys()
        return own | {self.ledger} if self.ledger else frozenset(own)

    @property
    def all(self) -> frozenset[str]:
        return self.inputs | self.internal | self.outputs | self.global_tables


@dataclass(frozen=True, slots=True)
class WorkerPlaces:
    """Says where to find out more of workers: ports of their /health, and their log files."""

    health_ports: tuple[int, ...] = ()
    logs: tuple[Path, ...] = ()


class ApplicationFacts:
    """Fetches the facts of one application on its cluster, each once.

    `app` and `topology` are None where the application is known by its id only; then `config` has
    defaults that need not be the application's.
    """

    def __init__(
        self,
        cluster: ClusterFacts,
        application_id: str,
        config: StreamsConfig,
        app: App | None = None,
        places: WorkerPlaces = WorkerPlaces(),
    ) -> None:
        self.cluster = cluster
        self.application_id = application_id
        self.config = config
        self.app = app
        self.topology = None if app is None else app.topology()
        self.places = places
        self.group_fetched_at_s = 0.0

    @property
    def state_path(self) -> Path:
        return self.config.state_dir / self.application_id

    @fetched_once
    def group(self) -> GroupDescription | None:
        """Describe the group, of the classic or the streams protocol; None if there is none."""
        self.group_fetched_at_s = time.monotonic()
        return self.cluster.clients().ask_brokers(
            lambda open_connection: fetch_group_description(open_connection, self.application_id)
        )

    @fetched_once
    def members(self) -> GroupMembers:
        """Decode what members have said. Raises ConfigError for members of another program."""
        group = self.group()
        if group is None:
            return GroupMembers((), {}, {})
        counts = self.cluster.clients().partition_counts
        return convert_group_members(self.application_id, group, counts)

    @fetched_once
    def committed(self) -> Mapping[Partition, OffsetAndMetadata]:
        """Fetch all committed offsets of the group."""
        return (
            self.cluster.clients()
            .ask_brokers(
                lambda open_connection: fetch_group_offsets(
                    open_connection, self.application_id, None, require_stable=False
                )
            )
            .offsets
        )

    @fetched_once
    def report(self) -> GroupReport:
        """Build the report of the group: members, tasks and lags."""
        group, members = self.group(), self.members()
        counts = self.cluster.clients().partition_counts
        partitions = list_report_partitions(self.application_id, members, counts, self.committed())
        ends = self.cluster.admin().fetch_latest_offsets(partitions) if partitions else {}
        offsets = TopicOffsets(counts, self.committed(), ends)
        state = "" if group is None else group.state
        is_streams = group is not None and group.streams is not None
        protocol = STREAMS if is_streams else "classic"
        return build_report(self.application_id, state, members, offsets, protocol)

    @fetched_once
    def workers(self) -> WorkerSamples:
        """Ask the workers of this machine. Raises StreamsError where none tells its figures."""
        return sample_workers(self.config.state_dir, self.application_id, self.places.health_ports)

    @fetched_once
    def progress(self) -> Mapping[Partition, InputProgress]:
        """Fetch how far each partition of the inputs is read."""
        there = self.cluster.description().topics
        read = {
            p: held.offset
            for p, held in self.committed().items()
            if p.topic in self.topics().inputs and p.number < len(there.get(p.topic, ()))
        }
        return fetch_progress(self.cluster, read)

    def _resolve_topology(self) -> Topology:
        """Return the topology with the topics that match its patterns now."""
        assert self.topology is not None
        if not self.topology.patterns:
            return self.topology
        return resolve_topology(self.topology, self.cluster.clients().partition_counts)

    @fetched_once
    def topics(self) -> KnownTopics:
        """Return the application's topics, by the best that is known of them."""
        if self.topology is not None:
            return _list_topics_of(self._resolve_topology(), has_ledger=self.config.ledger)
        for subscribed in self.members().subscriptions.values():
            if subscribed.topology is not None:
                return self._add_ledger(
                    _list_declared_topics(self.application_id, subscribed.topology)
                )
        return self._add_ledger(self._derive_topics_from_offsets())

    def derive_former_counts(self, missing: Collection[str]) -> Mapping[str, int]:
        """Return how many partitions topics had that are gone, as far as something shows that."""
        witnesses: list[Partition] = []
        # What can't be read is told by points of their own.
        with suppress(OSError, ValueError):
            witnesses += list_partitions_on_disk(self.state_path)
        with suppress(ConnectionLost, OutcomeUnknown, UserError):
            witnesses += self.committed()
            for assigned in self.members().assignments.values():
                witnesses += (Partition(*each) for each in assigned.partitions)
        return derive_former_counts(
            missing,
            witnesses,
            {} if self.topology is None else list_equally_partitioned_topics(self.topology),
            self.cluster.clients().partition_counts,
        )

    def _add_ledger(self, found: KnownTopics) -> KnownTopics:
        """Add the ledger, if the cluster has it, to topics that are known without the settings."""
        name = ledger_topic(self.application_id)
        known = name if name in self.cluster.description().topics else None
        return KnownTopics(
            found.source,
            found.inputs,
            found.changelogs,
            found.repartition,
            copartitioned=found.copartitioned,
            ledger=known,
        )

    def _derive_topics_from_offsets(self) -> KnownTopics:
        committed = self.committed()
        found = find_internal_topics(
            self.application_id, self.cluster.description().topics, committed=committed
        )
        changelogs = {
            topic: strip_application_id(self.application_id, topic) or topic
            for topic in found.own
            if topic.endswith("-changelog")
        }
        repartition = frozenset(found.own) - changelogs.keys()
        inputs = frozenset(each.topic for each in committed) - repartition
        return KnownTopics("its committed offsets", inputs, changelogs, repartition)


def _list_topics_of(topology: Topology, *, has_ledger: bool) -> KnownTopics:
    """Return the topics of an App."""
    sinks = {
        sink.topic
        for sub in topology.subtopologies
        for sink in sub.sinks
        if not sink.internal and isinstance(sink.topic, str)
    }
    return KnownTopics(
        "the App",
        frozenset(topology.input_topics),
        {topic: spec.name for topic, spec in list_changelogs(topology).items()},
        frozenset(topology.repartition_topics),
        frozenset(sinks),
        frozenset(table.topic for table in topology.global_tables),
        topology.copartitioned,
        ledger_topic(topology.application_id) if has_ledger else None,
    )


def _list_declared_topics(application_id: str, declared: DeclaredTopology) -> KnownTopics:
    """Return the topics that a member has declared."""
    changelogs = {
        topic: strip_application_id(application_id, topic) or topic
        for sub in declared.subtopologies.values()
        for topic in sub.list_changelogs(application_id)
        if topic not in sub.sources
    }
    return KnownTopics(
        "its members",
        frozenset(declared.input_topics),
        changelogs,
        frozenset(declared.repartition_topics),
        copartitioned=declared.copartitioned,
    )
