"""Declare a topology to the leader of a group: each sub-topology, whatever their order.

A task's number is that of its sub-topology, and numbers follow the order of the steps: two versions
of an application may number the same sub-topologies differently. So members declare each by what it
is, its source topics and its stores, with what the leader needs to know how many tasks it has.
Kafka's counterpart is the topology in a StreamsGroupHeartbeat (KIP-1071).
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from streams.serdes.described_types import DescribedType, type_from_plain, type_to_plain
from streams.topics import is_pattern
from streams.topology.description import (
    DescribedStore,
    DescribedSubtopology,
    TopologyDescription,
)
from streams.topology.expand import name_changelog_topic
from streams.topology.partitions import (
    TopicFlow,
    derive_partition_counts,
    find_topics_downstream,
)
from streams.topology.resolve import (
    match_patterns_without_overlap,
    replace_patterns,
    replace_patterns_of_groups,
)

_FINGERPRINT_CHARS = 16
_UNLOGGED, _RESTORED_FROM = ", without a changelog", ", restored from "
"""How the format of a store ends that can't be restored, or is restored from an input."""


class MessageTypes(NamedTuple):
    """Holds the types of the keys and the values of a store or a repartition topic."""

    key: DescribedType | None
    value: DescribedType | None


@dataclass(frozen=True, slots=True)
class DeclaredSubtopology:
    """Identifies a sub-topology by its source topics and stores.

    A source may be the text of a pattern; `matched` has the topics of those, as they were when the
    topology was resolved. `sinks` are the repartition topics that it writes. `formats` say of each
    store and each repartition topic that it reads how its records are written, and `types` what
    their keys and values are, where serdes declare it.
    """

    sources: frozenset[str]
    stores: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()
    formats: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, MessageTypes] = field(default_factory=dict)
    matched: frozenset[str] = frozenset()

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that its tasks read: those that it names, and those of patterns."""
        return self.matched.union(each for each in self.sources if not is_pattern(each))

    def is_same_as(self, other: DeclaredSubtopology) -> bool:
        """Return whether both sub-topologies have the same tasks.

        They have if they read the same topics into the same stores, and can read what the other has
        written. What else they do may differ.
        """
        mine, theirs = ((s.sources, s.stores, s.formats) for s in (self, other))
        return mine == theirs

    def list_changelogs(self, application_id: str) -> list[str]:
        """Return the topics that the stores are restored from, sorted.

        Those that are among `sources` are inputs that serve as the changelogs of their tables.
        """
        topics = []
        for store in self.stores:
            text = self.formats.get(store, "")
            _, is_restored_from_input, input_topic = text.rpartition(_RESTORED_FROM)
            if is_restored_from_input:
                topics.append(input_topic)
            elif not text.endswith(_UNLOGGED):
                topics.append(name_changelog_topic(application_id, store))
        return sorted(topics)


@dataclass(frozen=True, slots=True)
class DeclaredTopology:
    """Holds the sub-topologies that make tasks, by their numbers.

    `fingerprint` is equal for equal topologies: steps, stores, their names and their order, and how
    the bytes of stores and repartition topics are written; functions are not in it.
    `repartition_topics` has their partitions as they were declared, None where they follow from
    what is upstream.
    """

    fingerprint: str
    subtopologies: Mapping[int, DeclaredSubtopology]
    repartition_topics: Mapping[str, int | None]
    copartitioned: tuple[frozenset[str], ...] = ()

    @property
    def sources(self) -> frozenset[str]:
        """Return all topics that tasks read, repartition topics included."""
        return frozenset[str]().union(*(sub.topics for sub in self.subtopologies.values()))

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the texts of the patterns of topics that tasks read."""
        subs = self.subtopologies.values()
        return tuple(each for sub in subs for each in sorted(sub.sources) if is_pattern(each))

    def resolve_patterns(
        self, existing_counts: Mapping[str, int], application_id: str
    ) -> DeclaredTopology:
        """Return the topology with the topics that match its patterns, see `resolve_topology`.

        Raises TopologyError for a topic that two patterns match.
        """
        if not (patterns := self.patterns):
            return self
        matches = match_patterns_without_overlap(patterns, existing_counts, application_id)
        subs = self.subtopologies.items()
        flows = [TopicFlow(sub.sources, sub.sinks) for _, sub in subs]
        downstream = find_topics_downstream(patterns, flows)
        kept = {
            topic: existing_counts[topic]
            for topic in downstream & existing_counts.keys()
            if self.repartition_topics[topic] is None
        }
        return replace(
            self,
            subtopologies={
                number: replace(
                    sub, matched=replace_patterns(filter(is_pattern, sub.sources), matches)
                )
                for number, sub in subs
            },
            repartition_topics={**self.repartition_topics, **kept},
            copartitioned=replace_patterns_of_groups(self.copartitioned, matches),
        )

    @property
    def input_topics(self) -> tuple[str, ...]:
        """Return the topics that the application reads and does not make itself, sorted."""
        return tuple(sorted(self.sources - self.repartition_topics.keys()))

    def find_subtopology(self, sources: frozenset[str]) -> DeclaredSubtopology | None:
        """Return the sub-topology that reads these topics and no others; None if there is none."""
        for sub in self.subtopologies.values():
            if sub.sources == sources:
                return sub
        return None

    def find_inputs_upstream_of(self, topic: str) -> frozenset[str]:
        """Return the input topics whose records lead to those of a repartition topic."""
        upstream = [topic]
        for each in upstream:  # the list grows while it is walked
            writers = [sub for sub in self.subtopologies.values() if each in sub.sinks]
            upstream += [t for sub in writers for t in sorted(sub.sources) if t not in upstream]
        return frozenset(upstream) - self.repartition_topics.keys()

    def find_topics_into_stores(self, sub: DeclaredSubtopology) -> frozenset[str]:
        """Return the repartition topics downstream of a sub-topology that are read into stores.

        Its records come to them directly, or over sub-topologies without stores.
        """
        downstream = sorted(sub.sinks)
        stored = set[str]()
        for each in downstream:  # the list grows while it is walked
            for reader in (other for other in self.subtopologies.values() if each in other.sources):
                if reader.stores:
                    stored.add(each)
                else:
                    downstream += [t for t in sorted(reader.sinks) if t not in downstream]
        return frozenset(stored)

    def derive_partition_counts(self, input_counts: Mapping[str, int]) -> dict[str, int]:
        """Return the partition counts of source topics, as far as `input_counts` determine them.

        Raises TopologyError for topics that meet by key and whose counts differ.
        """
        return derive_partition_counts(
            [TopicFlow(sub.topics, sub.sinks) for sub in self.subtopologies.values()],
            self.repartition_topics,
            self.copartitioned,
            {topic: input_counts[topic] for topic in self.input_topics if topic in input_counts},
        )


def declare_topology(description: TopologyDescription) -> DeclaredTopology:
    """Convert a topology's description to what members declare to the group, less global tables."""
    subs = [sub for sub in description.subtopologies if not sub.is_global]
    return DeclaredTopology(
        fingerprint=_compute_fingerprint(description),
        subtopologies={
            sub.number: DeclaredSubtopology(
                frozenset(sub.sources),
                frozenset(store.name for store in sub.stores),
                frozenset(sub.internal_sinks),
                _collect_state_formats(sub),
                _collect_message_types(sub),
            )
            for sub in subs
        },
        repartition_topics={t.name: t.partitions for t in description.repartition_topics},
        copartitioned=tuple(frozenset(group) for group in description.copartitioned),
    )


def _collect_state_formats(sub: DescribedSubtopology) -> dict[str, str]:
    """Return the record formats of the stores and the repartition topics read, by name."""
    stores = {store.name: _format_store_layout(store) for store in sub.stores}
    return stores | {
        step.topic: f"{step.key} and {step.value}"
        for step in sub.steps
        if step.kind == "source" and step.internal and step.topic
    }


def _collect_message_types(sub: DescribedSubtopology) -> dict[str, MessageTypes]:
    """Return the types of what the application writes into stores and repartition topics."""
    stores = {
        store.name: MessageTypes(store.key_type, store.value_type)
        for store in sub.stores
        if not store.source_is_changelog
    }
    topics = {
        step.topic: MessageTypes(step.key_type, step.value_type)
        for step in sub.steps
        if step.kind == "source" and step.internal and step.topic
    }
    return {name: types for name, types in (stores | topics).items() if any(types)}


def _convert_types_to_plain(types: Mapping[str, MessageTypes]) -> dict[str, Any]:
    return {name: [type_to_plain(each) for each in both] for name, both in types.items()}


def _format_store_layout(store: DescribedStore) -> str:
    """Format a store's windows and serdes as text that is equal for equal formats."""
    is_join = store.retain_duplicates  # a join finds entries by their time, whatever the size
    size_ms = None if is_join else store.window_size_ms
    windows = "" if size_ms is None else f" in windows of {size_ms} ms"
    kept = ", with a changelog" if store.logged else _UNLOGGED
    if store.source_is_changelog:
        kept = f"{_RESTORED_FROM}{store.changelog}"
    return f"{store.kind} of {store.key} and {store.value}{windows}{kept}"


def _compute_fingerprint(description: TopologyDescription) -> str:
    """Return a hash of all that members of one group must have in common."""
    fields: list[Any] = [
        [
            [
                [s.kind, s.name, s.predecessors, s.operator, s.stores, s.topic, s.chosen]
                for s in sub.steps
            ],
            [[s.name, s.kind, s.key, s.value, s.logged, s.changelog] for s in sub.stores],
            # The formats are part of it because members with equal fingerprints are not compared
            # any further.
            sorted(_collect_state_formats(sub).items()),
        ]
        for sub in description.subtopologies
    ]
    fields.append([[topic.name, topic.partitions] for topic in description.repartition_topics])
    fields.append(description.copartitioned)
    types = [
        _convert_types_to_plain(_collect_message_types(sub)) for sub in description.subtopologies
    ]
    if any(types):
        fields.append(types)
    return hashlib.sha256(orjson.dumps(fields)).hexdigest()[:_FINGERPRINT_CHARS]


def encode_topology(declared: DeclaredTopology) -> str:
    """Encode a declared topology as deflated JSON in base64.

    Deflated, since every member's is kept in one record of the group (KAFKA-7149).
    """
    fields = {
        "fingerprint": declared.fingerprint,
        "subtopologies": [
            {
                "number": number,
                "sources": sorted(sub.sources),
                "stores": sorted(sub.stores),
                "sinks": sorted(sub.sinks),
                "formats": dict(sub.formats),
                "types": _convert_types_to_plain(sub.types),
            }
            for number, sub in declared.subtopologies.items()
        ],
        "repartition_topics": dict(declared.repartition_topics),
        "copartitioned": [sorted(group) for group in declared.copartitioned],
    }
    return base64.b64encode(zlib.compress(orjson.dumps(fields), 9)).decode()


def decode_topology(text: str) -> DeclaredTopology:
    """Decode a topology of `encode_topology`; fields that a later version added are skipped.

    Raises ValueError for anything else.
    """
    try:
        fields: Any = orjson.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        return DeclaredTopology(
            fingerprint=str(fields["fingerprint"]),
            subtopologies={
                int(sub["number"]): DeclaredSubtopology(
                    frozenset(sub["sources"]),
                    frozenset(sub["stores"]),
                    frozenset(sub["sinks"]),
                    sub["formats"],
                    {
                        name: MessageTypes(*map(type_from_plain, both))
                        for name, both in sub.get("types", {}).items()
                    },
                )
                for sub in fields["subtopologies"]
            },
            repartition_topics=fields["repartition_topics"],
            copartitioned=tuple(frozenset(group) for group in fields["copartitioned"]),
        )
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise ValueError(f"not a declared topology ({error!r}): {text!r:.200}") from error
