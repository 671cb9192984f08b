"""Compare topologies as a broker does that holds a streams group to its topology (KIP-1071).

Such a group keeps the topology with which it was formed. Kafka up to 4.4 refuses a member as soon
as anything differs of what members send: topics, their numbers of partitions and settings, and the
numbers of the sub-topologies. Steps, serdes and stores without a changelog are not sent.

    compared                            known of an internal topic
    two descriptions of versions        what stores declare; with what `millrace plan --save` has
                                        noted of the application's settings, all settings
    a group's topology, as the broker   its settings and replication factor; partitions once they
    describes it, with a worker's       are derived, and not which topics meet by key
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from streams.topology.declared import declare_topology
from streams.topology.description import TopologyDescription

INPUT, CHANGELOG = "input", "changelog"
REPARTITION, WRITTEN_REPARTITION = "repartition topic", "written repartition topic"
"""The roles of topics in sub-topologies."""
_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class Sides(NamedTuple):
    """Names the two topologies of a comparison in its clauses."""

    old: str
    new: str


VERSIONS = Sides("the old version", "the new version")


@dataclass(frozen=True, slots=True)
class SentTopic:
    """Holds what is sent of a topic in one of its roles.

    `partitions` None are derived by the broker. `settings` are those that the broker creates it
    with, `replication_factor` 0 is the broker's default; None: not known. `store` says of a
    changelog how its store is kept, where its settings are not known.
    """

    subtopology: int
    partitions: int | None = None
    settings: Mapping[str, str] | None = None
    replication_factor: int | None = None
    store: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SentTopology:
    """Holds what is sent of a topology that can differ between members.

    `topics` are by name and role: a repartition topic is the sink of one sub-topology, the source
    of one. `copartitioned` None: which topics meet by key is not known.
    """

    topics: Mapping[tuple[str, str], SentTopic] = field(default_factory=dict)
    copartitioned: set[frozenset[str]] | None = None


def find_sent_differences(old: TopologyDescription, new: TopologyDescription) -> tuple[str, ...]:
    """Return the differences for which a streams group of `old` refuses a member of `new`.

    Empty if one of them reads topics by a pattern: no streams group has such a topology.
    """
    if any(declare_topology(each).patterns for each in (old, new)):
        return ()
    return tuple(
        list_sent_differences(_derive_sent_topology(old), _derive_sent_topology(new), VERSIONS)
    )


def list_sent_differences(old: SentTopology, new: SentTopology, sides: Sides) -> Iterator[str]:
    """Yield a clause for each topic that differs, and one for topics that meet by key.

    Of what one of the two does not know nothing is said.
    """
    for topic, role in sorted(old.topics.keys() | new.topics.keys()):
        before, after = old.topics.get((topic, role)), new.topics.get((topic, role))
        what = f"{role} {topic!r}"
        if before is None or after is None:
            yield f"{what} is of {sides.new if before is None else sides.old} only"
        else:
            yield from (f"{what} {each}" for each in _compare_topics(before, after, sides))
    if old.copartitioned is None or new.copartitioned is None:
        return
    known = {topic for topic, _ in old.topics.keys() & new.topics.keys()}
    for group in sorted(old.copartitioned ^ new.copartitioned, key=sorted):
        if group <= known:  # else the topics tell
            kept = sides.new if group in new.copartitioned else sides.old
            yield f"that {' and '.join(map(repr, sorted(group)))} meet by key is of {kept} only"


def _compare_topics(before: SentTopic, after: SentTopic, sides: Sides) -> Iterator[str]:
    """Yield what differs of a topic that both have, each as the end of a clause."""
    if before.subtopology != after.subtopology:
        yield (
            f"is in sub-topology {before.subtopology} of {sides.old}, "
            f"and in {after.subtopology} of {sides.new}"
        )
    if before.partitions != after.partitions:
        if None in (before.partitions, after.partitions):
            yield "is declared with another number of partitions"
        else:
            yield (
                f"has {before.partitions} partitions of {sides.old}, "
                f"and {after.partitions} of {sides.new}"
            )
    if before.settings is None or after.settings is None:
        if before.store != after.store:
            yield "has other settings"
    else:
        for name in sorted(before.settings.keys() | after.settings.keys()):
            old, new = (each.get(name, "unset") for each in (before.settings, after.settings))
            if old != new:
                yield f"has {name} {old} of {sides.old}, and {new} of {sides.new}"
    factors = before.replication_factor, after.replication_factor
    if None not in factors and factors[0] != factors[1]:
        old, new = ("the brokers' default" if not each else str(each) for each in factors)
        yield f"has replication factor {old} of {sides.old}, and {new} of {sides.new}"


def _derive_sent_topology(description: TopologyDescription) -> SentTopology:
    """Return what members send of a topology, as far as it follows from its description."""
    declared = declare_topology(description)
    stores = {
        store.changelog: (("kind", store.kind), *sorted(store.topic_settings.items()))
        for sub in description.subtopologies
        for store in sub.stores
        if store.changelog and not store.source_is_changelog
    }
    sent = description.sent_settings
    factor = None if sent is None else max(sent.replication_factor, 0)
    settings = None if sent is None else sent.topics
    topics: dict[tuple[str, str], SentTopic] = {}
    for number, sub in declared.subtopologies.items():
        for topic in sub.sources:
            if topic in declared.repartition_topics:
                topics[topic, REPARTITION] = SentTopic(
                    number,
                    declared.repartition_topics[topic],
                    None if settings is None else settings.get(topic, _NO_SETTINGS),
                    factor,
                )
            else:
                topics[topic, INPUT] = SentTopic(number)
        for topic in sub.sinks:
            topics[topic, WRITTEN_REPARTITION] = SentTopic(number)
        for topic in set(sub.list_changelogs(description.application_id)) - declared.sources:
            topics[topic, CHANGELOG] = SentTopic(
                number,
                settings=None if settings is None else settings.get(topic, _NO_SETTINGS),
                replication_factor=factor,
                store=stores.get(topic, ()),
            )
    return SentTopology(topics, set(declared.copartitioned))
