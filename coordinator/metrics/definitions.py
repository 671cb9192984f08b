"""List the figures of the broker; a collector can emit no other."""

from __future__ import annotations

from functools import cache

from coordinator.metrics.definition import MetricDefinition
from coordinator.metrics.group_definitions import (
    GROUP_DEFINITIONS,
    OFFSET_DEFINITIONS,
    SHARD_DEFINITIONS,
)
from coordinator.metrics.log_definitions import LOG_DEFINITIONS
from coordinator.metrics.request_definitions import REQUEST_DEFINITIONS
from coordinator.metrics.transaction_definitions import TRANSACTION_DEFINITIONS


def all_definitions() -> tuple[MetricDefinition, ...]:
    """Return the definitions of all figures, those of one group together."""
    return (
        *REQUEST_DEFINITIONS,
        *LOG_DEFINITIONS,
        *SHARD_DEFINITIONS,
        *GROUP_DEFINITIONS,
        *OFFSET_DEFINITIONS,
        *TRANSACTION_DEFINITIONS,
    )


@cache
def find_definition(name: str) -> MetricDefinition:
    """Return the definition of a figure by its name.

    Raises: KeyError for one that isn't defined.
    """
    return {each.name: each for each in all_definitions()}[name]
