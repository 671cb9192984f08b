"""Where a shard is in its life, and what it answers there.

    state      follows            a request gets
    LOADING    RESIGNED (elect)   COORDINATOR_LOAD_IN_PROGRESS (14): soon, here
    ACTIVE     LOADING            an answer
    RESIGNED   LOADING, ACTIVE    NOT_COORDINATOR (16): look for the coordinator again

A shard is made LOADING; one whose log is empty has nothing to load and is ACTIVE at once.
Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime.
"""

from __future__ import annotations

from enum import Enum, auto

from coordinator.errors import Code


class Life(Enum):
    LOADING = auto()
    ACTIVE = auto()
    RESIGNED = auto()


FOLLOWS: dict[Life, frozenset[Life]] = {
    Life.LOADING: frozenset({Life.RESIGNED}),
    Life.ACTIVE: frozenset({Life.LOADING}),
    Life.RESIGNED: frozenset({Life.LOADING, Life.ACTIVE}),
}

REFUSALS: dict[Life, Code] = {
    Life.LOADING: Code.COORDINATOR_LOAD_IN_PROGRESS,
    Life.RESIGNED: Code.NOT_COORDINATOR,
}
