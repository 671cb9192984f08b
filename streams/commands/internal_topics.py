"""Tell which topics are internal to an application, for a reset that deletes no others'.

Names alone don't tell: "billing-monthly-totals-changelog" is of the store "monthly-totals" of
"billing", or of the store "totals" of "billing-monthly". What is certain:

    what is known              the topics that are the application's
    its topology               its changelogs, repartition topics and foreign-key joins' topics
    its committed offsets      repartition topics among them; changelogs of the stores that the
                               metadata name
    its application id         names in which no other id fits: nothing after the id has a hyphen,
                               or all of it is a name that steps without one get

Others whose names fit are left over from an earlier version of the topology, or are another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.topology.build import Topology

_CHANGELOG = "-changelog"
_SUFFIX = re.compile(
    r"(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)
"""The end of an internal topic's name, as in Kafka Streams' StreamsResetter."""
_GENERATED_NAME = re.compile(r"K(STREAM|TABLE)-.*-\d{10}.*")
"""A name that a step without one gets; no application id has such a part."""


def select_topics_named_like_internal(topics: Iterable[str]) -> list[str]:
    """Return the names that are those of changelogs, repartition topics or the like."""
    return [t for t in topics if any(f.end() == len(t) for f in _SUFFIX.finditer(t))]


class InternalTopics(NamedTuple):
    """Holds which topics are an application's, and which may be its or another application's."""

    own: list[str]
    undecided: list[str]


def list_topology_topics(topology: Topology) -> frozenset[str]:
    """Return the names of the internal topics of a topology: changelogs and repartition topics."""
    changelogs = {
        topology.restore_topic_of(spec.name)
        for sub in topology.subtopologies
        for spec in sub.stores
        if spec.logged and spec.source_topic is None
    }
    return frozenset(changelogs) | topology.repartition_topics


def find_internal_topics(
    application_id: str,
    topics: Iterable[str],
    groups: Iterable[str] = (),
    *,
    topology: Topology | None = None,
    committed: Mapping[Partition, OffsetAndMetadata] | None = None,
) -> InternalTopics:
    """Return which of the cluster's topics are internal to an application.

    `groups` are ids of other applications: by groups, or by state directories. A topic of one of
    them is none of this application, though its name begins so. With a `topology` only its topics
    are the application's own; without it, those that its id and its `committed` offsets prove.
    """
    named = {t: n for t in topics if (n := strip_application_id(application_id, t)) is not None}
    prefix = f"{application_id}-"
    others = tuple(f"{group}-" for group in groups if group.startswith(prefix))
    if topology is not None:
        own = list_topology_topics(topology) & named.keys()
    else:
        own = frozenset(find_topics_proven_own(application_id, named, committed or {}))
    fitting = {topic for topic in named.keys() - own if not topic.startswith(others)}
    # Changelogs are first: an application that starts in between misses them.
    return InternalTopics(
        sorted(own, key=lambda topic: (not topic.endswith(_CHANGELOG), topic)), sorted(fitting)
    )


def find_topics_proven_own(
    application_id: str,
    topics: Iterable[str],
    committed: Mapping[Partition, OffsetAndMetadata],
) -> set[str]:
    """Return the topics that the id, or the committed offsets, prove to be the application's."""
    named = {t: n for t in topics if (n := strip_application_id(application_id, t)) is not None}
    return {
        topic
        for topic, name in named.items()
        if "-" not in name
        or _GENERATED_NAME.fullmatch(name)
        or _is_proven_internal(topic, name, committed)
    }


def strip_application_id(application_id: str, topic: str) -> str | None:
    """Return the name of the store or step in an internal topic's name; None for another topic."""
    prefix = f"{application_id}-"
    if not topic.startswith(prefix):
        return None
    rest = topic.removeprefix(prefix)
    ends = [found.start() for found in _SUFFIX.finditer(rest) if found.end() == len(rest)]
    return rest[: ends[0]].rstrip("-") if ends else None


def _is_proven_internal(
    topic: str, name: str, committed: Mapping[Partition, OffsetAndMetadata]
) -> bool:
    """Return whether an application's committed offsets prove that a topic is internal to it.

    A changelog among the inputs proves nothing: an application may read another's.
    """
    if not topic.endswith(_CHANGELOG):
        return any(partition.topic == topic for partition in committed)
    found = (decode_metadata(held.metadata) for held in committed.values())
    return any(metadata.position_of_store(name) is not None for metadata in found)
