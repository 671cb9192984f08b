"""Find where each input of a topology begins that has no committed offset."""

from __future__ import annotations

from streams.graph.nodes import SourceNode
from streams.settings.config import StreamsConfig
from streams.settings.offset_reset import (
    STOP_WORDS,
    InitialPolicies,
    OffsetResetPolicy,
    ResetStrategy,
    parse_reset_policy,
)
from streams.topics import is_pattern, parse_pattern
from streams.topology.build import Topology


def find_initial_policies(topology: Topology, config: StreamsConfig) -> InitialPolicies:
    """Return each source's own policy, and the default: `start_at`, else `auto_offset_reset`."""
    default = parse_reset_policy(
        config.auto_offset_reset, stop_word=STOP_WORDS["auto_offset_reset"]
    )
    if config.start_at is not None:
        default = OffsetResetPolicy(ResetStrategy.AT_TIME, at_ms=config.start_at)
    own = {
        node.topic: node.offset_reset
        for sub in topology.subtopologies
        for node in sub.nodes
        if isinstance(node, SourceNode) and node.offset_reset is not None
    }
    return InitialPolicies(
        default,
        {topic: policy for topic, policy in own.items() if not is_pattern(topic)},
        {parse_pattern(text): policy for text, policy in own.items() if is_pattern(text)},
    )
