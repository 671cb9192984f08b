"""Add a source to the graph: a topic with its serdes, and the options of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from streams.dsl.source_serdes import require_serdes, require_source_serdes
from streams.errors import TopologyError
from streams.graph.nodes import Graph, SourceNode
from streams.serdes import Serde
from streams.settings.offset_reset import parse_source_policy
from streams.settings.timestamp_extractors import (
    TimestampExtractor,
    TimestampPolicyName,
    parse_timestamp_extractor,
)
from streams.topics import TopicPattern

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Holds what one source has of its own; None: as the application's settings say."""

    timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None
    offset_reset: str | timedelta | None = None
    co_partitioned: bool = True
    """True if the topics of a pattern must have equal partition counts before state by key."""


DEFAULT_OPTIONS = SourceOptions()


def add_source_node(
    graph: Graph,
    step: str,
    topic: Any,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    options: SourceOptions = DEFAULT_OPTIONS,
    *,
    accepts_pattern: bool = False,
) -> SourceNode:
    """Add a source that reads `topic` and return it.

    Raises TopologyError for a missing serde and a wrong option, naming the step.
    """
    key, value = require_source_serdes(step, topic, key, value, accepts_pattern=accepts_pattern)
    return _add_node(graph, step, topic, key, value, options)


def add_pattern_source(
    graph: Graph,
    step: str,
    pattern: TopicPattern,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    options: SourceOptions = DEFAULT_OPTIONS,
) -> SourceNode:
    """Add a source that reads the topics of a pattern and return it.

    Raises TopologyError for a missing serde and a wrong option, naming the step.
    """
    key, value = require_serdes(step, f"the topics of {pattern!r}", key, value)
    return _add_node(graph, step, pattern.text, key, value, options)


def _add_node(
    graph: Graph,
    step: str,
    topic: str,
    key: Serde[Any],
    value: Serde[Any],
    options: SourceOptions,
) -> SourceNode:
    """Add a source of a topic, or of a pattern's text, with its options parsed."""
    node = SourceNode(
        name=step,
        topic=topic,
        key=key,
        value=value,
        timestamp_extractor=_parse_option(
            step, "timestamp_extractor", options.timestamp_extractor, parse_timestamp_extractor
        ),
        offset_reset=_parse_option(step, "offset_reset", options.offset_reset, parse_source_policy),
        co_partitioned=options.co_partitioned,
    )
    graph.add_node(node)
    return node


def _parse_option(
    step: str, name: str, given: Any, parse_value: Callable[[Any], _Parsed]
) -> _Parsed | None:
    """Return a source's own option as it was parsed, or None. Raises TopologyError."""
    if given is None:
        return None
    try:
        return parse_value(given)
    except ValueError as error:
        raise TopologyError(f"step {step!r}: {name}: {error}") from None
