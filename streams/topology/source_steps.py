"""Find the step that reads a topic, by the topic's name or by a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.graph.nodes import SourceNode
from streams.topics import is_pattern, parse_pattern
from streams.topology.build import Topology


class SourceSteps(Mapping[str, str]):
    """Maps each topic that a topology reads to its step; it lists those that have a name only."""

    def __init__(self, topology: Topology) -> None:
        sources = [
            node
            for sub in topology.subtopologies
            for node in sub.nodes
            if isinstance(node, SourceNode)
        ]
        self._by_topic = {n.topic: n.name for n in sources if not is_pattern(n.topic)}
        self._by_pattern = [
            (parse_pattern(n.topic), n.name) for n in sources if is_pattern(n.topic)
        ]

    def __getitem__(self, topic: str) -> str:
        """Return the step that reads a topic. Raises KeyError if none does."""
        if topic in self._by_topic:
            return self._by_topic[topic]
        for pattern, step in self._by_pattern:
            if pattern.matches_topic(topic):
                return step
        raise KeyError(topic)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_topic)

    def __len__(self) -> int:
        return len(self._by_topic)
