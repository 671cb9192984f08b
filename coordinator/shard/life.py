"""Define the states of a shard, their transitions, and the code that each answers requests with.

    state      follows                   a request gets
    LOADING    RESIGNED (elect)          COORDINATOR_LOAD_IN_PROGRESS: soon, here
    ACTIVE     LOADING                   an answer
    FAILED     LOADING                   NOT_COORDINATOR: its log is damaged, until it is repaired
    RESIGNED   LOADING, ACTIVE, FAILED   NOT_COORDINATOR: look for the coordinator again

A shard is made LOADING; one whose log is empty has nothing to load and is ACTIVE at once, one whose
log could not be opened is FAILED at once. Only an ACTIVE one is written to.
Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime.
"""

from __future__ import annotations

from enum import Enum, auto

from coordinator.errors import Code


class Life(Enum):
    """Lists the states of a shard, as CoordinatorRuntime.CoordinatorState does in Kafka."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    RESIGNED = auto()


FOLLOWS: dict[Life, frozenset[Life]] = {
    Life.LOADING: frozenset({Life.RESIGNED}),
    Life.ACTIVE: frozenset({Life.LOADING}),
    Life.FAILED: frozenset({Life.LOADING}),
    Life.RESIGNED: frozenset({Life.LOADING, Life.ACTIVE, Life.FAILED}),
}

REFUSALS: dict[Life, Code] = {
    Life.LOADING: Code.COORDINATOR_LOAD_IN_PROGRESS,
    Life.FAILED: Code.NOT_COORDINATOR,
    Life.RESIGNED: Code.NOT_COORDINATOR,
}
