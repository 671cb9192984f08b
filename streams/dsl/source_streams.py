"""Remember the streams of topics, so that a topic that is read twice has one source."""

from __future__ import annotations

from typing import Any

from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.sources import SourceOptions, add_pattern_source, add_source_node
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.serdes import Serde
from streams.topics import TopicPattern


class SourceStreams:
    """Holds the streams that an application reads, by topic or pattern."""

    def __init__(self, builder: InternalStreamsBuilder) -> None:
        self._builder = builder
        self._streams: dict[str, Stream[Any, Any]] = {}
        self._options: dict[str, SourceOptions] = {}

    def read_topic(
        self,
        topic: Any,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        name: str | None,
        options: SourceOptions,
    ) -> Stream[Any, Any]:
        """Return the stream of a topic or a pattern, adding its source the first time.

        Raises TopologyError if it is read again in another way.
        """
        read = topic.text if isinstance(topic, TopicPattern) else topic
        again = self._streams.get(read) if isinstance(read, str) else None
        if again is None:
            graph = self._builder.graph
            step = graph.choose_step_name("KSTREAM-SOURCE", name)
            if isinstance(topic, TopicPattern):
                node = add_pattern_source(graph, step, topic, key, value, options)
            else:
                node = add_source_node(
                    graph, step, topic, key, value, options, accepts_pattern=True
                )
            again = Stream(self._builder, node, node.key, node.value)
            self._streams[read] = again
            self._options[read] = options
        elif (again._key, again._value) != (key, value):
            raise TopologyError(
                f"topic {topic!r} is read twice, and the second time with other serdes: give both "
                "the same, or take the stream of the first and map it"
            )
        elif self._options[read] != options:
            raise TopologyError(
                f"topic {topic!r} is read twice, and the second time with another "
                "timestamp_extractor or offset_reset (or co_partitioned): give both the same, or "
                "use the first stream"
            )
        return again
