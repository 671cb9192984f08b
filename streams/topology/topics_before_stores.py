"""Find the repartition topics by which records of one sub-topology reach a store of another one.

What a sub-topology writes into such a topic is counted in a state that it does not have itself. If
it read its inputs again, each record would count twice there.
"""

from __future__ import annotations

from collections.abc import Iterable

from streams.topology.build import Subtopology, Topology


def find_repartition_topics_before_stores(topology: Topology) -> dict[int, frozenset[str]]:
    """Return the repartition topics that lead to a store, by the sub-topology that writes them.

    Sub-topologies that write none are left out. A topic leads to a store if a sub-topology that
    reads it has one, or writes a topic that leads to one.
    """
    leading = _find_leading_topics(topology.subtopologies)
    internal = topology.repartition_topics
    found = {
        sub.number: frozenset(_list_sink_topics(sub)) & internal & leading
        for sub in topology.subtopologies
    }
    return {number: topics for number, topics in found.items() if topics}


def _find_leading_topics(subtopologies: Iterable[Subtopology]) -> frozenset[str]:
    """Return the topics whose records reach a store, directly or over other topics."""
    behind = [sub for sub in subtopologies if not sub.stores]
    leading = {topic for sub in subtopologies if sub.stores for topic in sub.sources}
    while found := [sub for sub in behind if not leading.isdisjoint(_list_sink_topics(sub))]:
        leading.update(topic for sub in found for topic in sub.sources)
        behind = [sub for sub in behind if sub not in found]
    return frozenset(leading)


def _list_sink_topics(subtopology: Subtopology) -> list[str]:
    """Return the topics that a sub-topology writes, those left out that a record chooses."""
    return [sink.topic for sink in subtopology.sinks if isinstance(sink.topic, str)]
