"""Find where each input of a topology begins that has no committed offset."""

from __future__ import annotations

from streams.settings.config import StreamsConfig
from streams.settings.offset_reset import (
    STOP_WORDS,
    InitialPolicies,
    OffsetResetPolicy,
    ResetStrategy,
    parse_reset_policy,
)
from streams.topology.build import Topology


def find_initial_policies(topology: Topology, config: StreamsConfig) -> InitialPolicies:
    """Return each source's own policy, and the default: `start_at`, else `auto_offset_reset`."""
    default = parse_reset_policy(
        config.auto_offset_reset, stop_word=STOP_WORDS["auto_offset_reset"]
    )
    if config.start_at is not None:
        default = OffsetResetPolicy(ResetStrategy.AT_TIME, at_ms=config.start_at)
    return InitialPolicies(
        default,
        {
            topic: source.offset_reset
            for sub in topology.subtopologies
            for topic, source in sub.sources.items()
            if source.offset_reset is not None
        },
    )
