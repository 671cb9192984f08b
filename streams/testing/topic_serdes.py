"""Find the serdes with which the records of each topic of a topology are written."""

from __future__ import annotations

from streams import serdes
from streams.graph.global_store_spec import find_topic_serdes
from streams.graph.nodes import SourceNode, StoreKind
from streams.testing.topic import KeyValueSerdes
from streams.topics import TopicPattern, is_pattern, parse_pattern
from streams.topology.build import Topology

_RAW = KeyValueSerdes(serdes.bytes, serdes.bytes)

_PLAIN_KEY_KINDS = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
"""The kinds of stores whose changelogs have the user's own keys. Keys of other kinds have a time in
them too, and a buffer's values have more than the user's."""


class TopicSerdes:
    """Holds the serdes of a topology's sources, sinks and changelogs by topic."""

    def __init__(self, topology: Topology) -> None:
        self.sources: dict[str, KeyValueSerdes] = {}
        """The serdes of the topics that are read."""
        self.sinks: dict[str, KeyValueSerdes] = {}
        self.has_dynamic_topics = False
        """Whether records are written to topics that a function of the record names."""
        self._dynamic_serdes = _RAW
        self._patterns: list[tuple[TopicPattern, KeyValueSerdes]] = []
        for sub in topology.subtopologies:
            for topic, source in sub.sources.items():
                self.sources[topic] = KeyValueSerdes(source.key, source.value)
            self._patterns += [
                (
                    parse_pattern(node.topic, topology.application_id),
                    KeyValueSerdes(node.key, node.value),
                )
                for node in sub.nodes
                if isinstance(node, SourceNode) and is_pattern(node.topic)
            ]
            for sink in sub.sinks:
                if isinstance(sink.topic, str):
                    self.sinks[sink.topic] = KeyValueSerdes(sink.key, sink.value)
                else:
                    self.has_dynamic_topics = True
                    self._dynamic_serdes = KeyValueSerdes(sink.key, sink.value)
        for table in topology.global_tables:
            self.sources[table.topic] = KeyValueSerdes(*find_topic_serdes(table))
        self.changelogs = {
            topology.restore_topic_of(spec.name): KeyValueSerdes(
                spec.key if spec.kind in _PLAIN_KEY_KINDS else serdes.bytes,
                serdes.bytes if spec.kind is StoreKind.BUFFER else spec.value,
            )
            for sub in topology.subtopologies
            for spec in sub.stores
            if spec.logged and spec.source_topic is None
        }

    def try_add_matching_topic(self, topic: str) -> bool:
        """Note the serdes of a topic that matches a pattern, and return whether it does."""
        found = next(
            (serdes for pattern, serdes in self._patterns if pattern.matches_topic(topic)), None
        )
        if found is not None:
            self.sources[topic] = found
        return found is not None

    def find_input_serdes(self, topic: str) -> KeyValueSerdes:
        """Return the serdes with which a test's records are written to a topic."""
        return self.sources.get(topic) or self.find_output_serdes(topic)

    def find_output_serdes(self, topic: str) -> KeyValueSerdes:
        """Return the serdes with which a topic's records are read.

        Those of the sink that chooses its topics by record, or bytes, for an unknown topic.
        """
        for known in (self.sinks, self.sources, self.changelogs):
            if topic in known:
                return known[topic]
        return self._dynamic_serdes
