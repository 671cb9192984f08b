"""Compare two versions as a broker does that holds a streams group to its topology (KIP-1071).

Such a group keeps the topology with which it was formed. Kafka up to 4.4 refuses a member as soon
as anything differs of what members send: topics, their numbers of partitions and settings, and the
numbers of the sub-topologies. Steps, serdes and stores without a changelog are not sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streams.topology.declared import declare_topology
from streams.topology.description import TopologyDescription

_OLD, _NEW = "of the old version only", "of the new version only"


class _SentTopic(NamedTuple):
    """Holds what is sent of a topic of a sub-topology; `settings` are those of its store."""

    role: str
    subtopology: int
    partitions: int | None = None
    settings: tuple[tuple[str, str], ...] = ()


class _SentTopology(NamedTuple):
    """Holds what is sent of a topology that can differ between versions."""

    topics: dict[tuple[str, str], _SentTopic]
    """By topic and role: a repartition topic is the sink of one sub-topology, the source of one."""
    copartitioned: set[frozenset[str]]


def find_sent_differences(old: TopologyDescription, new: TopologyDescription) -> tuple[str, ...]:
    """Return the differences for which a streams group of `old` refuses a member of `new`.

    Empty if one of them reads topics by a pattern: no streams group has such a topology.
    """
    if any(declare_topology(each).patterns for each in (old, new)):
        return ()
    return tuple(_list_differences(_select_sent_parts(old), _select_sent_parts(new)))


def _list_differences(old: _SentTopology, new: _SentTopology) -> Iterator[str]:
    """Yield a clause for each topic that differs, and one for topics that meet by key."""
    for topic, role in sorted(old.topics.keys() | new.topics.keys()):
        before, after = old.topics.get((topic, role)), new.topics.get((topic, role))
        if before is None or after is None:
            yield f"{role} {topic!r} is {_NEW if before is None else _OLD}"
            continue
        if before.subtopology != after.subtopology:
            yield (
                f"{role} {topic!r} is in sub-topology {before.subtopology} of the old version, "
                f"and in {after.subtopology} of the new one"
            )
        if before.partitions != after.partitions:
            yield f"{role} {topic!r} is declared with another number of partitions"
        if before.settings != after.settings:
            yield f"{role} {topic!r} has other settings"
    known = {topic for topic, _ in old.topics.keys() & new.topics.keys()}
    for group in sorted(old.copartitioned ^ new.copartitioned, key=sorted):
        if group <= known:  # else the topics tell
            kept = _NEW if group in new.copartitioned else _OLD
            yield f"that {' and '.join(map(repr, sorted(group)))} meet by key is {kept}"


def _select_sent_parts(description: TopologyDescription) -> _SentTopology:
    """Return what members send of a topology, as far as it follows from its description."""
    declared = declare_topology(description)
    stores = {
        store.changelog: (("kind", store.kind), *sorted(store.topic_settings.items()))
        for sub in description.subtopologies
        for store in sub.stores
        if store.changelog and not store.source_is_changelog
    }
    topics: dict[tuple[str, str], _SentTopic] = {}
    for number, sub in declared.subtopologies.items():
        for topic in sub.sources:
            is_internal = topic in declared.repartition_topics
            role = "repartition topic" if is_internal else "input"
            partitions = declared.repartition_topics.get(topic)
            topics[topic, role] = _SentTopic(role, number, partitions)
        for topic in sub.sinks:
            role = "written repartition topic"
            topics[topic, role] = _SentTopic(role, number)
        for topic in set(sub.list_changelogs(description.application_id)) - declared.sources:
            settings = stores.get(topic, ())
            topics[topic, "changelog"] = _SentTopic("changelog", number, settings=settings)
    return _SentTopology(topics, set(declared.copartitioned))
