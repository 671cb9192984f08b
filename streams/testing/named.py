"""The topics of a topology by name, each with the serdes that its records are written with."""

from __future__ import annotations

from streams import serdes
from streams.testing.topic import Serdes
from streams.topology.build import Topology
from streams.topology.nodes import StoreKind

_RAW = Serdes(serdes.bytes, serdes.bytes)

_PLAIN = (StoreKind.KEY_VALUE, StoreKind.VERSIONED)
"""The kinds whose changelogs have the user's own keys; those of others have a time in them too. A
buffer's have more beside its values."""


class Named:
    """What a topology says of each topic."""

    def __init__(self, topology: Topology) -> None:
        self.sources: dict[str, Serdes] = {}
        """Of the topics that it reads."""
        self.sinks: dict[str, Serdes] = {}
        self.is_open = False
        """Whether it writes to topics that only a record names."""
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
        """With which records are put into it."""
        return self.sources.get(topic) or self.read(topic)

    def read(self, topic: str) -> Serdes:
        """With which its records are read."""
        for known in (self.sinks, self.sources, self.changelogs):
            if topic in known:
                return known[topic]
        return self._any
