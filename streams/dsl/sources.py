"""Add a source to the graph: a topic with its serdes, and the options of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.dsl.source_serdes import require_source_serdes
from streams.errors import TopologyError
from streams.graph.nodes import Graph, SourceNode
from streams.serdes import Serde
from streams.settings.timestamp_extractors import (
    TimestampExtractor,
    TimestampPolicyName,
    parse_timestamp_extractor,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Holds what one source has of its own; None: as the application's settings say."""

    timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None


DEFAULT_OPTIONS = SourceOptions()


def add_source_node(
    graph: Graph,
    step: str,
    topic: Any,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    options: SourceOptions = DEFAULT_OPTIONS,
) -> SourceNode:
    """Add a source that reads `topic` and return it.

    Raises TopologyError for a missing serde and a wrong option, naming the step.
    """
    key, value = require_source_serdes(step, topic, key, value)
    node = SourceNode(
        name=step,
        topic=topic,
        key=key,
        value=value,
        timestamp_extractor=_parse_extractor(step, options.timestamp_extractor),
    )
    graph.add_node(node)
    return node


def _parse_extractor(step: str, given: Any) -> TimestampExtractor | None:
    """Return a source's own extractor, or None. Raises TopologyError."""
    if given is None:
        return None
    try:
        return parse_timestamp_extractor(given)
    except ValueError as error:
        raise TopologyError(f"step {step!r}: timestamp_extractor: {error}") from None
