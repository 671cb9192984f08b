"""Test that heartbeats of streams groups which hypothesis draws get Kafka's answers, call by call.

A history is a list of steps, each with a seed of its own for its details. So hypothesis can leave
steps out of a history that is answered otherwise, and prints the shortest that it finds. The draws
of a test run are the same each time; `--histories` says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.conformance.earlier_streams_groups import name_topics
from tests.conformance.kept_histories import compare_histories
from tests.conformance.test_random_streams_groups import Step, StepKind, StreamsHistory
from tests.conformance.wire import Api, Client

SEEDS = st.integers(0, 2**16 - 1)
KINDS = st.sampled_from(
    [
        *[StepKind.JOIN] * 4,
        *[StepKind.BEAT] * 12,
        *[StepKind.LEAVE] * 2,
        *[StepKind.COMMIT] * 2,
        StepKind.TOPICS,
        StepKind.STANDBYS,
    ]
)
_NUMBERS = count(1_000)  # of a history: each has a group and topics of its own


class DrawnHistory(NamedTuple):
    """Holds a history; of its seed are the topology, topics, and whether there are endpoints."""

    seed: int
    steps: list[Step]


# Lists of lists, since hypothesis draws few elements of one: some thirty steps, at most eighty.
STEPS = st.lists(st.builds(Step, KINDS, st.integers(0, 5), SEEDS), min_size=1, max_size=10)
HISTORIES = st.builds(
    DrawnHistory,
    SEEDS,
    st.lists(STEPS, min_size=1, max_size=8).map(lambda lists: [*chain.from_iterable(lists)]),
)
DRAWING: dict[str, Any] = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    """Provide this broker beside the one that other tests use."""
    broker = EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def run_history(broker: Broker, number: int, drawn: DrawnHistory) -> list[str]:
    """Run a history on a broker; return its lines."""
    with Client(broker.bootstrap_servers, complete=broker.kind == "kafka") as client:
        for kind in (0, 1):  # upon which real Kafka creates the coordinators' topics
            client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
        history = StreamsHistory(client, drawn.seed, f"drawn-{number}", name_topics(number))
        history.run_steps(drawn.steps)
    return history.lines


def test_drawn_heartbeats_are_answered_as_kafka_answers_them(
    broker: Broker, embedded: Broker, request: pytest.FixtureRequest
) -> None:
    if broker.kind != "kafka":
        pytest.skip("it compares this broker with Kafka, call by call")
    examples = 5 * request.config.getoption("--histories")

    @settings(max_examples=examples, **DRAWING)
    @given(HISTORIES)
    def check(drawn: DrawnHistory) -> None:
        number = next(_NUMBERS)
        theirs, ours = (run_history(each, number, drawn) for each in (broker, embedded))
        compare_histories(theirs, ours, f"{drawn}")

    check()


def test_a_difference_is_told_by_the_shortest_history() -> None:
    """Plant a broker that answers otherwise when a member leaves that has joined."""

    def differs(drawn: DrawnHistory) -> bool:
        joined: set[int] = set()
        for kind, member, _ in drawn.steps:
            if kind is StepKind.LEAVE and member in joined:
                return True
            if kind is StepKind.JOIN:
                joined.add(member)
        return False

    found = find(HISTORIES, differs, settings=settings(max_examples=1_000, **DRAWING))
    join, leave = found.steps
    assert (join.kind, leave.kind) == (StepKind.JOIN, StepKind.LEAVE)
    assert join.member == leave.member
