"""List the topics that an application reads, keeps its stores in, and writes.

They follow from its topology or, where only the id is known, from the group's offsets and the names
of topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.changelogs.window_expiry import name_expiry_entries
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.spark.cuts.cut import StoreCut
from streams.spark.cuts.named_topics import require_named_topics
from streams.topology.build import Topology

if TYPE_CHECKING:
    from streams.app import App

UnknownPosition: TypeAlias = tuple[str, Partition]
"""A store, and a partition of its changelog whose position no committed offset names."""

_CHANGELOG = "-changelog"


@dataclass(frozen=True, slots=True)
class StoreChangelog:
    """Represents a store's changelog, and the topics whose committed offsets tell its positions.

    With `is_source_topic` the changelog is one of these topics, and its committed offset is the
    position.
    """

    changelog: str
    position_topics: frozenset[str]
    is_source_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationTopics:
    """Represents the topics that an application reads, writes and keeps its stores in.

    `outputs`: the topics that it writes beside changelogs, repartition topics included; None where
    they are not known. `writes_transactions`: whether it runs with exactly-once semantics.
    """

    application_id: str
    sources: frozenset[str]
    store_changelogs: Mapping[str, StoreChangelog] = field(default_factory=dict)
    outputs: frozenset[str] | None = None
    writes_transactions: bool = True

    @property
    def names(self) -> set[str]:
        """Return the names of all known topics of the application."""
        changelogs = {each.changelog for each in self.store_changelogs.values()}
        return {*self.sources, *changelogs, *(self.outputs or ())}


def list_app_topics(app: App) -> ApplicationTopics:
    """List the topics of an application by its topology. Raises TopologyError."""
    topology = app.topology()
    require_named_topics(topology)
    sinks = [sink.topic for sub in topology.subtopologies for sink in sub.sinks]
    fixed = frozenset(topic for topic in sinks if isinstance(topic, str))
    all_fixed = all(isinstance(topic, str) for topic in sinks)
    return ApplicationTopics(
        application_id=topology.application_id,
        sources=frozenset(topology.source_topics),
        store_changelogs=_list_store_changelogs(topology),
        outputs=fixed | set(app.config.handlers.dead_letter_topics()) if all_fixed else None,
        writes_transactions=app.config.exactly_once,
    )


def _list_store_changelogs(topology: Topology) -> dict[str, StoreChangelog]:
    """Return the changelog of each logged store of the topology, by the store's name."""
    return {
        spec.name: StoreChangelog(
            topology.restore_topic_of(spec.name),
            frozenset(sub.sources),
            spec.source_topic is not None,
        )
        for sub in topology.subtopologies
        for spec in sub.stores
        if spec.logged
    }


def infer_group_topics(
    application_id: str,
    offsets: Mapping[Partition, OffsetAndMetadata],
    topics: Collection[str],
    group_ids: Collection[str],
) -> ApplicationTopics:
    """Infer an application's topics from its committed offsets and the names of topics.

    `topics` and `group_ids` are all that the brokers have, since the changelog of `a`'s store `b-c`
    has the same name as that of `a-b`'s store `c`.
    """
    names = [
        name
        for topic in topics
        if (name := _parse_store_of_changelog(topic, application_id, group_ids))
    ]
    metadata = {p: decode_metadata(held.metadata) for p, held in offsets.items()}
    topics_by_store = {
        name: frozenset(
            p.topic for p, each in metadata.items() if each.position_of_store(name) is not None
        )
        for name in names
    }
    if not any(topics_by_store.values()):  # offsets of Kafka Streams or of a tool name no stores
        topics_by_store = dict.fromkeys(names, frozenset(p.topic for p in offsets))
    return ApplicationTopics(
        application_id=application_id,
        sources=frozenset(p.topic for p in offsets),
        store_changelogs={
            name: StoreChangelog(f"{application_id}-{name}{_CHANGELOG}", read)
            for name, read in topics_by_store.items()
            if read
        },
    )


def _parse_store_of_changelog(
    changelog: str, application_id: str, group_ids: Collection[str]
) -> str | None:
    """Return the name of the changelog's store; None if it is not one of this application."""
    if not changelog.endswith(_CHANGELOG):
        return None
    owners = [g for g in {*group_ids, application_id} if changelog.startswith(f"{g}-")]
    if max(owners, key=len, default="") != application_id:
        return None
    return changelog[len(application_id) + 1 : -len(_CHANGELOG)] or None


def read_commit_numbers(
    sources: Iterable[Partition], offsets: Mapping[Partition, OffsetAndMetadata]
) -> dict[Partition, int]:
    """Map each partition to the commit number that the metadata of its committed offset names.

    The number is 0, which no commit has, for `sources` of which no offset is committed.
    """
    numbers = {p: decode_metadata(held.metadata).commit_number for p, held in offsets.items()}
    return dict.fromkeys((p for p in sources if p not in offsets), 0) | {
        p: number for p, number in numbers.items() if number is not None
    }


def resolve_store_positions(
    store_changelogs: Mapping[str, StoreChangelog],
    offsets: Mapping[Partition, OffsetAndMetadata],
    partition_counts: Mapping[str, int],
) -> tuple[dict[str, StoreCut], list[UnknownPosition]]:
    """Return each store's changelog positions, and the partitions whose position is unknown.

    All input partitions of a task carry the positions at each of its commits. Where an input has
    been removed from the topology, or was added later, they are of different commits: the largest
    is the last.
    """
    metadata = {p: decode_metadata(held.metadata) for p, held in offsets.items()}
    stores: dict[str, StoreCut] = {}
    unnamed: list[UnknownPosition] = []
    for name, table in sorted(store_changelogs.items()):
        positions_by_number: dict[int, int] = {}
        expired: dict[int, int] = {}
        expired_entry = name_expiry_entries(name).expired_offset
        for number in range(partition_counts.get(table.changelog, 0)):
            changelog = Partition(table.changelog, number)
            if table.is_source_topic:
                held = offsets.get(changelog)
                positions_by_number[number] = 0 if held is None else held.offset
                expired[number] = positions_by_number[number]
                continue
            read = [Partition(topic, number) for topic in table.position_topics]
            task_metadata = [metadata[p] for p in read if p in metadata]
            named_positions = [
                each for one in task_metadata if (each := one.position_of_store(name)) is not None
            ]
            positions_by_number[number] = max(named_positions, default=0)
            named = max((each.find_entry(expired_entry) or 0 for each in task_metadata), default=0)
            if named:
                expired[number] = named
            if task_metadata and not named_positions:
                unnamed.append((name, changelog))
        stores[name] = StoreCut(table.changelog, positions_by_number, expired)
    return stores, unnamed
