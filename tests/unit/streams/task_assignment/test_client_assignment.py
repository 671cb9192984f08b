"""Test the assignments that an application's own assignor returns, and which are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.task_assignment import (
    ApplicationState,
    AssignmentConfigs,
    AssignmentError,
    KafkaStreamsAssignment,
    KafkaStreamsState,
    TaskInfo,
    identity_assignment,
    validate_task_assignment,
)

STATEFUL, STATELESS = "0_0", "1_0"


def assign(process_id: str, *active: str, standby: str = "") -> KafkaStreamsAssignment:
    """Return an assignment of active tasks, and of standby tasks with blanks between."""
    assigned = KafkaStreamsAssignment(process_id)
    for task in active:
        assigned.assign_task(task)
    for task in standby.split():
        assigned.assign_task(task, "standby")
    return assigned


@pytest.fixture
def state() -> ApplicationState:
    tasks = {
        task: TaskInfo(task, task == STATEFUL, frozenset(), frozenset())
        for task in (STATEFUL, STATELESS)
    }
    clients = {
        "a": KafkaStreamsState(
            "a",
            2,
            {"a-1": frozenset(["0_0", "0_1"]), "a-2": frozenset()},
            frozenset([STATEFUL]),
            task_lags={"0_0": 0, "0_1": 70, "0_2": 7},
        ),
        "b": KafkaStreamsState("b", 1, {"b-1": frozenset()}, frozenset(), frozenset([STATEFUL])),
    }
    return ApplicationState(tasks, clients, AssignmentConfigs())


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([assign("a", STATEFUL, STATELESS), assign("b")], None),
        ([assign("a", STATEFUL, STATELESS), assign("b", standby=STATEFUL)], None),
        ([assign("a"), assign("b")], None),
        ([assign("a", "7_0"), assign("b")], AssignmentError.UNKNOWN_TASK_ID),
        ([assign("a", standby="7_0"), assign("b")], AssignmentError.UNKNOWN_TASK_ID),
        (
            [assign("a", STATEFUL), assign("b", STATEFUL)],
            AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES,
        ),
        (
            [assign("a", STATELESS), assign("b", standby=STATELESS)],
            AssignmentError.INVALID_STANDBY_TASK,
        ),
        ([assign("a", STATEFUL)], AssignmentError.MISSING_PROCESS_ID),
        ([], AssignmentError.MISSING_PROCESS_ID),
        ([assign("a"), assign("b"), assign("c")], AssignmentError.UNKNOWN_PROCESS_ID),
        # The first error in the order of Kafka Streams is told.
        ([assign("c", "7_0")], AssignmentError.UNKNOWN_TASK_ID),
        ([assign("c", STATEFUL)], AssignmentError.MISSING_PROCESS_ID),
    ],
)
def test_an_assignment_is_checked_as_kafka_streams_does(
    state: ApplicationState,
    assignments: list[KafkaStreamsAssignment],
    error: AssignmentError | None,
) -> None:
    assert validate_task_assignment(state, assignments) == error


def test_the_previous_assignment_can_be_copied_and_changed(state: ApplicationState) -> None:
    copied = identity_assignment(state)
    assert copied["a"].tasks == {STATEFUL: "active"}
    assert copied["b"].tasks == {STATEFUL: "standby"}
    copied["b"].assign_task(STATELESS)
    copied["b"].remove_task(STATEFUL)
    assert copied["b"].list_tasks("active") == [STATELESS]
    assert copied["b"].list_tasks("standby") == []
    assert validate_task_assignment(state, copied.values()) is None


def test_tasks_of_a_thread_are_sorted_by_lag_without_those_of_unknown_lag(
    state: ApplicationState,
) -> None:
    client = state.kafka_streams_states["a"]
    assert client.consumer_client_ids == ["a-1", "a-2"]
    assert client.prev_tasks_by_lag("a-1") == ["0_0", "0_1"]
    assert client.prev_tasks_by_lag("a-2") == []
    assert client.lag_for("0_1") == 70
    assert client.lag_for("9_9") is None


def test_tasks_that_are_gone_are_none_of_the_identity_assignment(state: ApplicationState) -> None:
    tasks = {STATELESS: state.all_tasks[STATELESS]}
    kept = identity_assignment(replace(state, all_tasks=tasks))
    assert kept == {"a": assign("a"), "b": assign("b")}
    assert identity_assignment(state) == {
        "a": assign("a", STATEFUL),
        "b": assign("b", standby=STATEFUL),
    }
