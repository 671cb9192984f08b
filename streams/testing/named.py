"""Find the serdes with which the records of each topic of a topology are written."""

from __future__ import annotations

from streams import serdes
from streams.testing.topic import Serdes
from streams.topology.build import Topology
from streams.topology.nodes import StoreKind

_RAW = Serdes(serdes.bytes, serdes.bytes)

_PLAIN = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
"""The kinds of stores whose changelogs have the user's own keys. Keys of other kinds have a time in
them too, and a buffer's values have more than the user's."""


class Named:
    """Holds the serdes of a topology's sources, sinks and changelogs by topic."""

    def __init__(self, topology: Topology) -> None:
        self.sources: dict[str, Serdes] = {}
        """The serdes of the topics that are read."""
        self.sinks: dict[str, Serdes] = {}
        self.is_open = False
        """Whether records are written to topics that a function of the record names."""
        self._any = _RAW
        for sub in topology.subtopologies:
            for topic, source in sub.sources.items():
                self.sources[topic] = Serdes(source.key, source.value)
            for sink in sub.sinks:
                if isinstance(sink.topic, str):
                    self.sinks[sink.topic] = Serdes(sink.key, sink.value)
                else:
                    self.is_open = True
                    self._any = Serdes(sink.key, sink.value)
        for table in topology.global_tables:
            self.sources[table.topic] = Serdes(table.store.key, table.store.value)
        self.changelogs = {
            topology.changelog(spec.name): Serdes(
                spec.key if spec.kind in _PLAIN else serdes.bytes,
                serdes.bytes if spec.kind is StoreKind.BUFFER else spec.value,
            )
            for sub in topology.subtopologies
            for spec in sub.stores
            if spec.logged and spec.source_topic is None
        }

    def piped(self, topic: str) -> Serdes:
        """Return the serdes with which a test's records are written to a topic."""
        return self.sources.get(topic) or self.read(topic)

    def read(self, topic: str) -> Serdes:
        """Return the serdes with which a topic's records are read.

        Those of the sink that chooses its topics by record, or bytes, for an unknown topic.
        """
        for known in (self.sinks, self.sources, self.changelogs):
            if topic in known:
                return known[topic]
        return self._any
