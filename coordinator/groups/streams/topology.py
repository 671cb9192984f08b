"""Represent the topology of an application as its members send it, and as a record keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

TopicConfigs: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """Represents a changelog or repartition topic that the broker is to create.

    `partition_count` 0: it follows from other topics. `replication_factor` 0: the broker's default.
    """

    name: str
    partition_count: int = 0
    replication_factor: int = 0
    configs: TopicConfigs = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Represents source topics with equally many partitions, by index in their sub-topology."""

    source_topics: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsSubtopology:
    """Represents one sub-topology: its source topics, its internal topics, and its sinks."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def all_source_topics(self) -> tuple[str, ...]:
        """Return the names of all topics that the sub-topology reads, repartition topics too."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """Represents the topology of a streams group; its epoch tells it from later ones."""

    epoch: int
    subtopologies: tuple[StreamsSubtopology, ...]
    # The sub-topology that reads a topic, by the topic's name.
    reader_ids: dict[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        readers = {
            name: each.subtopology_id
            for each in self.subtopologies
            for name in each.all_source_topics
        }
        object.__setattr__(self, "reader_ids", readers)

    @property
    def required_topics(self) -> list[str]:
        """Return the names of the topics that all sub-topologies read, and of their changelogs."""
        names: dict[str, None] = dict.fromkeys(self.reader_ids)
        for each in self.subtopologies:
            names.update(dict.fromkeys(topic.name for topic in each.changelog_topics))
        return list(names)

    def is_equivalent_to(self, other: StreamsTopology) -> bool:
        """Return whether another topology says the same, in whatever order of sub-topologies."""
        return self.epoch == other.epoch and _sort_by_id(self) == _sort_by_id(other)


def _sort_by_id(topology: StreamsTopology) -> list[StreamsSubtopology]:
    return sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
