"""Compare the topology of a streams group, as its broker describes it, with that of a worker.

A broker that refuses a topology doesn't say what differs. Its description of the group has all of
the group's topology but which topics meet by key, and whether the partitions of a repartition topic
were declared or derived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from streams.membership.streams.topology_request import TopologyToSend
from streams.topology.streams_group_topology import (
    CHANGELOG,
    INPUT,
    REPARTITION,
    WRITTEN_REPARTITION,
    SentTopic,
    SentTopology,
    Sides,
    list_sent_differences,
)

GROUP_AND_WORKER = Sides("the group", "this worker")


def read_described_topology(subtopologies: Iterable[Any]) -> SentTopology:
    """Convert the sub-topologies of a StreamsGroupDescribe answer."""
    topics: dict[tuple[str, str], SentTopic] = {}
    for each in subtopologies:
        if not each.subtopology_id.isdecimal():
            continue
        number = int(each.subtopology_id)
        topics.update(((str(name), INPUT), SentTopic(number)) for name in each.source_topics)
        topics.update(
            ((str(name), WRITTEN_REPARTITION), SentTopic(number))
            for name in each.repartition_sink_topics
        )
        for role, infos in (
            (REPARTITION, each.repartition_source_topics),
            (CHANGELOG, each.state_changelog_topics),
        ):
            for info in infos:
                topics[str(info.name), role] = SentTopic(
                    number,
                    int(info.partitions) or None,
                    {each.key: each.value for each in info.topic_configs},
                    int(info.replication_factor),
                )
    return SentTopology(topics)


def find_topology_differences(described: SentTopology, own: TopologyToSend) -> tuple[str, ...]:
    """Return a clause for each thing in which a group's topology differs from a worker's.

    Empty also where they differ in nothing that the broker tells.
    """
    sent = _to_sent_topology(own)
    comparable = {
        key: replace(topic, partitions=sent.topics[key].partitions)
        if key in sent.topics and None in (topic.partitions, sent.topics[key].partitions)
        else topic
        for key, topic in described.topics.items()
    }
    return tuple(list_sent_differences(SentTopology(comparable), sent, GROUP_AND_WORKER))


def _to_sent_topology(own: TopologyToSend) -> SentTopology:
    """Convert the topology that a worker sends to the form in which brokers describe one."""
    declared, factor = own.declared, max(own.replication_factor, 0)
    topics: dict[tuple[str, str], SentTopic] = {}
    for number, sub in declared.subtopologies.items():
        for name in sub.sources:
            if name not in declared.repartition_topics:
                topics[name, INPUT] = SentTopic(number)
                continue
            settings = own.topic_settings.get(name, {})
            partitions = declared.repartition_topics[name]
            topics[name, REPARTITION] = SentTopic(number, partitions, settings, factor)
        topics.update(((name, WRITTEN_REPARTITION), SentTopic(number)) for name in sub.sinks)
        for name in set(sub.list_changelogs(own.application_id)) - declared.sources:
            topics[name, CHANGELOG] = SentTopic(
                number, None, own.topic_settings.get(name, {}), factor
            )
    return SentTopology(topics)
