"""Describe a topology to the broker, which derives tasks and internal topics from it (KIP-1071).

The broker creates internal topics with the settings that are sent along, and counts a group's
topology as another one as soon as anything of it differs, settings of topics included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams.topology.declared import DeclaredSubtopology, DeclaredTopology

TOPOLOGY_EPOCH = 0
"""Kafka 4.4 takes no later epoch of a topology from members: a group has one topology."""
_BROKER_DEFAULT = 0


@dataclass(frozen=True, slots=True)
class TopologyToSend:
    """Holds a topology with the settings of its internal topics.

    `replication_factor` -1 is the broker's default.
    """

    application_id: str
    declared: DeclaredTopology
    topic_settings: Mapping[str, Mapping[str, str]]
    replication_factor: int

    @property
    def subtopology_by_topic(self) -> dict[str, int]:
        """Return the number of the sub-topology that reads each topic."""
        return {
            topic: number
            for number, sub in self.declared.subtopologies.items()
            for topic in sub.sources
        }


def build_topology(classes: Mapping[str, Any], topology: TopologyToSend) -> Any:
    """Build the topology of a heartbeat; `classes` are those of the request."""
    return classes["Topology"](
        epoch=TOPOLOGY_EPOCH,
        subtopologies=tuple(
            _build_subtopology(classes, topology, number, sub)
            for number, sub in sorted(topology.declared.subtopologies.items())
        ),
    )


def _build_subtopology(
    classes: Mapping[str, Any], topology: TopologyToSend, number: int, sub: DeclaredSubtopology
) -> Any:
    """Build one sub-topology. Topics that serve as changelogs of their tables are sources only."""
    declared = topology.declared
    repartition = [topic for topic in sorted(sub.sources) if topic in declared.repartition_topics]
    inputs = [topic for topic in sorted(sub.sources) if topic not in declared.repartition_topics]
    changelogs = [
        topic
        for topic in sub.list_changelogs(topology.application_id)
        if topic not in declared.sources
    ]

    def build_topic(name: str, partitions: int) -> Any:
        return classes["TopicInfo"](
            name=name,
            partitions=partitions,
            replication_factor=max(topology.replication_factor, _BROKER_DEFAULT),
            topic_configs=tuple(
                classes["KeyValue"](key=key, value=value)
                for key, value in sorted(topology.topic_settings.get(name, {}).items())
            ),
        )

    def build_copartition_group(topics: frozenset[str]) -> Any:
        return classes["CopartitionGroup"](
            source_topics=tuple(inputs.index(each) for each in inputs if each in topics),
            repartition_source_topics=tuple(
                repartition.index(each) for each in repartition if each in topics
            ),
        )

    return classes["Subtopology"](
        subtopology_id=str(number),
        source_topics=tuple(inputs),
        state_changelog_topics=tuple(build_topic(each, 0) for each in changelogs),
        repartition_sink_topics=tuple(sorted(sub.sinks)),
        repartition_source_topics=tuple(
            build_topic(each, declared.repartition_topics[each] or 0) for each in repartition
        ),
        copartition_groups=tuple(
            build_copartition_group(topics)
            for topics in sorted(declared.copartitioned, key=sorted)
            if topics <= sub.sources
        ),
    )
