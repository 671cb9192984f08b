"""Index one version of a topology by name, as the comparison with another version needs it.

`streams.topology.compare_versions` compares two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from state.subtopologies import SubtopologyContents
from streams.serdes.described_types import DescribedType
from streams.topology.description import DescribedStep, DescribedStore, TopologyDescription
from streams.topology.name_origin import Lineage, find_lineages
from streams.topology.partitions import TopicFlow, derive_partition_counts


class RepartitionSerdes(NamedTuple):
    """Holds the serdes with which a repartition topic is read."""

    key: str
    value: str
    key_type: DescribedType | None = None
    value_type: DescribedType | None = None


@dataclass(frozen=True, slots=True)
class VersionIndex:
    """Indexes the stores, topics and lineages of one version by name."""

    stores: Mapping[str, DescribedStore]
    directories: Mapping[str, int | None]
    """The number that the directories of each store's tasks have; None for a global store."""
    topics: Mapping[str, RepartitionSerdes]
    lineages: Mapping[str, Lineage]
    partition_counts: dict[str, int]
    steps: tuple[DescribedStep, ...]
    application_id: str

    @property
    def changelogs(self) -> dict[str, str]:
        """Return the changelogs that the application makes, with the store of each."""
        return {
            store.changelog: store.name
            for store in self.stores.values()
            if store.changelog and not store.source_is_changelog
        }


def index_version(
    description: TopologyDescription,
    input_counts: Mapping[str, int],
    directory_numbers: Mapping[int, int],
) -> VersionIndex:
    """Index a described version's stores, topics and lineages by name.

    `input_counts` are partition counts; `directory_numbers` those of the sub-topologies.
    """
    subs = description.subtopologies
    internal = {topic.name for topic in description.repartition_topics}
    return VersionIndex(
        stores={store.name: store for sub in subs for store in sub.stores},
        directories={s.name: directory_numbers.get(sub.number) for sub in subs for s in sub.stores},
        topics={
            step.topic: RepartitionSerdes(
                step.key or "", step.value or "", step.key_type, step.value_type
            )
            for sub in subs
            for step in sub.steps
            if step.kind == "source" and step.topic in internal
        },
        lineages=find_lineages(description),
        partition_counts=_derive_all_counts(description, input_counts),
        steps=tuple(step for sub in subs for step in sub.steps),
        application_id=description.application_id,
    )


def _derive_all_counts(
    description: TopologyDescription, input_counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the partition counts, as far as known, of inputs and of the topics made of them."""
    subs = [sub for sub in description.subtopologies if not sub.is_global]
    counts = derive_partition_counts(
        [TopicFlow(frozenset(sub.sources), frozenset(sub.internal_sinks)) for sub in subs],
        {topic.name: topic.partitions for topic in description.repartition_topics},
        description.copartitioned,
        {topic: input_counts[topic] for topic in description.input_topics if topic in input_counts},
    )
    for sub in subs:
        if counts.keys() >= set(sub.sources):
            tasks = max(counts[topic] for topic in sub.sources)
            logs = [store.changelog for store in sub.stores if not store.source_is_changelog]
            counts |= {changelog: tasks for changelog in logs if changelog}
    return counts


def collect_subtopology_contents(
    description: TopologyDescription,
) -> dict[int, SubtopologyContents]:
    """Return the sources and stores of each sub-topology by number, without global tables."""
    return {
        sub.number: SubtopologyContents(
            frozenset(sub.sources), frozenset(each.name for each in sub.stores)
        )
        for sub in description.subtopologies
        if not sub.is_global
    }
