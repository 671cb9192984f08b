"""The leader's duty: internal topics as they must be, and every task given to one member."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from coordinator.assignors.tasks import assign_tasks
from streams.config import StreamsConfig
from streams.errors import ConfigError, StreamsError, TopologyError
from streams.membership.protocol import Assigned, Subscribed
from streams.positions import Partition
from streams.runtime.clients import Admin
from streams.runtime.internal_topics import COMPACTION_LAG, REPARTITION, changelog_settings
from streams.topology.build import Subtopology, Topology

log = logging.getLogger(__name__)


def task_id(subtopology: Subtopology, partition: int) -> str:
    """A task's name in Kafka Streams' manner: `<sub-topology>_<partition>`."""
    return f"{subtopology.number}_{partition}"


def check_inputs(
    topology: Topology, counts: Mapping[str, int], servers: str, dead_letters: Iterable[str] = ()
) -> None:
    """Raises ConfigError naming the input, output and dead-letter topics that don't exist, and
    TopologyError naming joined ones whose partitions differ."""
    read = (*topology.input_topics, *(table.topic for table in topology.global_tables))
    missing = [topic for topic in read if topic not in counts]
    sinks = {
        s.topic_name
        for sub in topology.subtopologies
        for s in sub.sinks
        if not s.internal and isinstance(s.topic, str)
    }
    missing += sorted(sinks - counts.keys() - set(missing))
    lost = sorted(set(dead_letters) - counts.keys())
    if lost:
        raise ConfigError(
            f"dead-letter topic {', '.join(map(repr, lost))} does not exist on {servers}: create "
            "it (`millrace create-topics`), or correct the handler that names it"
        )
    if missing:
        raise ConfigError(
            f"topic {', '.join(map(repr, missing))} does not exist on {servers}: create it "
            "(`millrace create-topics`), or correct its name in the topology"
        )
    topology.partition_counts({topic: counts[topic] for topic in topology.input_topics})


class Planner:
    """Makes the internal topics and assigns tasks, for the members that the group names."""

    def __init__(self, topology: Topology, config: StreamsConfig, admin: Admin) -> None:
        self._topology = topology
        self._config = config
        self._admin = admin
        self._inputs: dict[str, int] | None = None
        """The partitions of the inputs as they were when tasks were last assigned."""

    def plan(self, members: Mapping[str, Subscribed]) -> dict[str, Assigned]:
        """What each member gets: nothing, and the reason, if one asks all of them to end.

        Raises StreamsError where a topic has the wrong partitions."""
        reasons = [each.shutdown for _, each in sorted(members.items()) if each.shutdown]
        if reasons:
            return dict.fromkeys(members, Assigned((), (), reasons[0]))
        tasks = self.tasks(self._prepare_topics())
        previous = {member: subscribed.tasks for member, subscribed in members.items()}
        return {
            member: Assigned(tuple(mine), tuple(p for task in mine for p in tasks[task]))
            for member, mine in assign_tasks(tasks, previous).items()
        }

    def is_outdated(self) -> bool:
        """Whether inputs have other partitions than when the tasks were assigned: to be asked by
        the leader now and then. One that took over without assigning takes them as it finds them.

        Raises StreamsError where an input does not exist any more. Source: KafkaConsumer's leader,
        which joins again when its metadata have changed (ConsumerCoordinator.java).
        """
        inputs = self._find_inputs(self._admin.partition_counts())
        if self._inputs is None:
            self._inputs = inputs
        return inputs != self._inputs

    def _find_inputs(self, existing: Mapping[str, int]) -> dict[str, int]:
        missing = [topic for topic in self._topology.input_topics if topic not in existing]
        if missing:
            raise StreamsError(f"input topics {missing} do not exist any more: create them again")
        return {topic: existing[topic] for topic in self._topology.input_topics}

    def tasks(self, counts: Mapping[str, int]) -> dict[str, list[Partition]]:
        """Every task with the partitions that it reads."""
        return {
            task_id(sub, number): [
                Partition(topic, number) for topic in sub.sources if number < counts[topic]
            ]
            for sub in self._topology.subtopologies
            for number in range(max(counts[topic] for topic in sub.sources))
        }

    def _prepare_topics(self) -> dict[str, int]:
        """Create what is missing; return the partition counts of all source topics."""
        topology = self._topology
        existing = self._admin.partition_counts()
        self._inputs = self._find_inputs(existing)
        try:
            counts = topology.partition_counts(self._inputs)
        except TopologyError as error:
            raise StreamsError(str(error)) from error
        wanted = {topic: counts[topic] for topic in topology.repartition_topics}
        settings = dict.fromkeys(wanted, REPARTITION)
        for sub in topology.subtopologies:
            for store in (s for s in sub.stores if s.logged and s.source_topic is None):
                changelog = topology.changelog(store.name)
                wanted[changelog] = max(counts[topic] for topic in sub.sources)
                settings[changelog] = changelog_settings(store, self._config.cut_retention_ms)
        for topic, partitions in wanted.items():
            if existing.get(topic, partitions) != partitions:
                raise StreamsError(
                    f"internal topic {topic!r} has {existing[topic]} partitions and the topology "
                    f"needs {partitions}: the inputs' partitions have changed; restore their "
                    "number, or reset the application: end its workers, then delete the offsets "
                    f"of group {topology.application_id!r}, its repartition and changelog topics, "
                    f"and {self._config.state_dir / topology.application_id} (docs/operations.md)"
                )
        new = {topic: count for topic, count in wanted.items() if topic not in existing}
        self._admin.create_topics(new, settings, self._config.replication_factor)
        self._compare_lags({t: each for t, each in settings.items() if t in existing})
        return counts

    def _compare_lags(self, wanted: Mapping[str, Mapping[str, str]]) -> None:
        """Topics that were there are left as they are; say which are compacted earlier than
        `cut_retention_ms` has it."""
        lags = {t: int(each.get(COMPACTION_LAG, 0)) for t, each in wanted.items()}
        asked = [topic for topic, lag in lags.items() if lag and self._config.cut_retention_ms]
        for topic, found in self._admin.topic_settings(asked).items() if asked else ():
            if int(found.get(COMPACTION_LAG, 0)) < lags[topic]:
                log.warning(
                    "%s has %s=%s, and cut_retention_ms asks for %d: alter it (kafka-configs), or "
                    "what a cut needs may be compacted away",
                    *(topic, COMPACTION_LAG, found.get(COMPACTION_LAG, 0), lags[topic]),
                )
