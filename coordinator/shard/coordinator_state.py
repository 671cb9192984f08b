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


class CoordinatorState(Enum):
    """Lists the states of a shard, as CoordinatorRuntime.CoordinatorState does in Kafka."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    RESIGNED = auto()


VALID_PREVIOUS_STATES: dict[CoordinatorState, frozenset[CoordinatorState]] = {
    CoordinatorState.LOADING: frozenset({CoordinatorState.RESIGNED}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.LOADING}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING}),
    CoordinatorState.RESIGNED: frozenset(
        {CoordinatorState.LOADING, CoordinatorState.ACTIVE, CoordinatorState.FAILED}
    ),
}

REFUSAL_CODES: dict[CoordinatorState, Code] = {
    CoordinatorState.LOADING: Code.COORDINATOR_LOAD_IN_PROGRESS,
    CoordinatorState.FAILED: Code.NOT_COORDINATOR,
    CoordinatorState.RESIGNED: Code.NOT_COORDINATOR,
}
