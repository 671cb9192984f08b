"""Test assignments by the application's own assignor: what it is given, and what comes of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import StreamsError, TaskAssignmentError
from streams.membership.protocol import RUNNING_OFFSET
from streams.task_assignment import (
    ApplicationState,
    KafkaStreamsAssignment,
    TaskTopicPartition,
    identity_assignment,
)
from tests.unit.streams.runtime.assigning.test_group_assignment import LOG_SIZE, TASKS, Group

Assign = Callable[[ApplicationState], Iterable[KafkaStreamsAssignment]]


def give_all_to(process_id: str, *, standby: bool = False, **fields: Any) -> Assign:
    """Return an assignor that gives all tasks to one client, and standbys of them to the others."""

    def assign(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        return [
            KafkaStreamsAssignment(name, dict.fromkeys(state.all_tasks, "active"), **fields)
            if name == process_id
            else KafkaStreamsAssignment(
                name, dict.fromkeys(state.all_tasks if standby else (), "standby")
            )
            for name in state.kafka_streams_states
        ]

    return assign


def test_the_assignor_decides_where_tasks_run_and_threads_share_them() -> None:
    group = Group(task_assignor=give_all_to("b", standby=True))
    group.join("a")
    group.join("b1", directory="b")
    group.join("b2", directory="b")
    given = group.rebalance()
    assert given["a"].tasks == ()
    assert given["a"].standby == TASKS
    assert sorted((*given["b1"].tasks, *given["b2"].tasks)) == list(TASKS)
    assert len(given["b1"].tasks) == len(given["b2"].tasks) == 2
    assert {each.rejoin_ms for each in given.values()} == {0}


def test_a_task_moves_when_its_owner_has_given_it_up() -> None:
    group = Group(task_assignor=give_all_to("a"))
    group.join("a")
    group.join("b")
    assert group.rebalance()["a"].tasks == TASKS
    group.leader = Group(task_assignor=give_all_to("b", followup_rebalance_ms=9)).leader
    given = group.rebalance()
    assert given["a"].revoked == TASKS
    assert given["b"].tasks == ()
    assert given["b"].rejoin_ms == 0, "the owner joins again anyway"
    given = group.rebalance()
    assert given["b"].tasks == TASKS
    assert given["b"].rejoin_ms == 9


def test_a_rebalance_at_once_is_one_after_the_least_time() -> None:
    group = Group(task_assignor=give_all_to("a", followup_rebalance_ms=0))
    group.join("a")
    assert group.rebalance()["a"].rejoin_ms == 1


def test_the_assignor_is_told_tasks_clients_and_lags() -> None:
    seen: list[ApplicationState] = []

    def look(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        seen.append(state)
        return list(give_all_to("a")(state))

    group = Group(task_assignor=look, num_standby_replicas=1, probing_rebalance_interval_ms=70_000)
    group.join("a1", directory="a", tags={"zone": "x"}, endpoint="a:1")
    group.join("a2", directory="a", tags={"zone": "x"})
    group.join("b", offsets={"0_0": 90}, standby=("0_0",))
    group.rebalance()
    state = seen[0]
    assert list(state.all_tasks) == list(TASKS)
    task = state.all_tasks["0_1"]
    assert task.is_stateful
    assert task.state_store_names == {"of-x"}
    assert task.topic_partitions == {
        TaskTopicPartition("x", 1, is_source=True, is_changelog=False),
        TaskTopicPartition("a-of-x-changelog", 1, is_source=False, is_changelog=True),
    }
    one, two = (state.kafka_streams_states[name] for name in "ab")
    assert (one.process_id, one.num_processing_threads) == ("a", 2)
    assert one.consumer_client_ids == ["a1", "a2"]
    assert one.client_tags == {"zone": "x"}
    assert (one.host_info, two.host_info) == ("a:1", "")
    assert one.previous_active_tasks == frozenset()
    assert [one.lag_for(task) for task in TASKS] == [LOG_SIZE] * 4
    assert [two.lag_for(task) for task in TASKS] == [LOG_SIZE - 90, *[LOG_SIZE] * 3]
    assert two.previous_standby_tasks == {"0_0"}
    configs = state.assignment_configs
    assert (configs.num_standby_replicas, configs.probing_rebalance_interval_ms) == (1, 70_000)
    group.rebalance()
    one = seen[1].kafka_streams_states["a"]
    assert one.previous_active_tasks == set(TASKS)
    assert [one.lag_for(task) for task in TASKS] == [0] * 4


def test_lags_are_unknown_while_nobody_tells_the_ends_of_changelogs() -> None:
    lags: list[object] = []

    def look(state: ApplicationState) -> Iterable[KafkaStreamsAssignment]:
        lags.append([state.kafka_streams_states["b"].lag_for(task) for task in TASKS])
        return list(give_all_to("a")(state))

    group = Group(task_assignor=look)
    group.join("a", tasks=TASKS, generation=1, offsets=dict.fromkeys(TASKS, RUNNING_OFFSET))
    group.join("b")
    group.script.fail("admin.fetch_available_latest_offsets", StreamsError("no broker"))
    given = group.rebalance()
    assert lags == [[None] * 4]
    interval_ms = group.config.probing_rebalance_interval_ms
    assert [given[member].rejoin_ms for member in "ab"] == [interval_ms, 0]


def test_the_assignor_is_told_racks() -> None:
    seen: list[ApplicationState] = []

    def look(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        seen.append(state)
        return list(give_all_to("a")(state))

    group = Group(task_assignor=look)
    group.admin.racks = {Partition("x", 1): frozenset(["r1", "r2"])}
    group.join("a", rack="r1")
    group.join("b")
    group.rebalance()
    states = seen[0].kafka_streams_states
    assert (states["a"].rack_id, states["b"].rack_id) == ("r1", "")
    racks = {each.topic: each.rack_ids for each in seen[0].all_tasks["0_1"].topic_partitions}
    assert racks == {"x": {"r1", "r2"}, "a-of-x-changelog": frozenset()}


def test_an_assignment_may_stay_as_it_was() -> None:
    group = Group(task_assignor=lambda state: identity_assignment(state).values())
    group.join("a", tasks=("0_0", "0_1"), generation=1)
    group.join("b", tasks=("0_2", "0_3"), generation=1)
    given = group.rebalance()
    assert {member: each.tasks for member, each in given.items()} == {
        "a": ("0_0", "0_1"),
        "b": ("0_2", "0_3"),
    }


def test_tasks_of_nobody_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(task_assignor=lambda state: identity_assignment(state).values())
    group.join("a", tasks=("0_0", "0_1"), generation=1)
    with caplog.at_level(logging.WARNING):
        group.rebalance()
    assert "assigned these tasks to no client" in caplog.text
    assert "0_2, 0_3" in caplog.text


def fail(state: ApplicationState) -> list[KafkaStreamsAssignment]:
    raise LookupError("told to")


@pytest.mark.parametrize(
    ("assign", "message"),
    [
        (
            lambda state: [KafkaStreamsAssignment("a"), KafkaStreamsAssignment("z")],
            "can't be used: UNKNOWN_PROCESS_ID: there is no client 'z'",
        ),
        (lambda state: [], "can't be used: MISSING_PROCESS_ID: client 'a' is left out"),
        (fail, "task_assignor failed: LookupError: told to"),
        (lambda state: None, "task_assignor failed: TypeError"),
        (lambda state: ["a"], "returned 'a' among its assignments"),
        (
            lambda state: [KafkaStreamsAssignment("a", ["0_0"])],  # type: ignore[arg-type]
            "tasks=.*'0_0'.* for client 'a': give a dict",
        ),
        *(
            (
                give_all_to("a", followup_rebalance_ms=given),
                "followup_rebalance_ms=.* for client 'a': give a whole number",
            )
            for given in (5.5, float("nan"), -1, True, 1 << 31, timedelta(seconds=1))
        ),
        (
            lambda state: [KafkaStreamsAssignment("a", {"0_0": "warm"})],  # type: ignore[dict-item]
            "assigned task '0_0' as 'warm', which is neither",
        ),
        (
            lambda state: [KafkaStreamsAssignment("a"), KafkaStreamsAssignment("a")],
            "two assignments of client 'a'",
        ),
    ],
)
def test_what_cant_be_used_ends_the_leaders_thread(assign: Any, message: str) -> None:
    group = Group(task_assignor=assign)
    group.join("a")
    with pytest.raises(StreamsError, match=message):
        group.rebalance()


def test_an_assignor_that_cant_assign_ends_the_threads_of_all_members() -> None:
    def refuse(state: ApplicationState) -> list[KafkaStreamsAssignment]:
        raise TaskAssignmentError("no client in zone x")

    group = Group(task_assignor=refuse)
    group.join("a")
    group.join("b")
    given = group.rebalance()
    for member in "ab":
        assert given[member].tasks == ()
        with pytest.raises(TaskAssignmentError, match="no client in zone x"):
            group.leader.adopt_assignment(given[member])


def test_versions_side_by_side_are_not_assigned_by_the_application(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Group("x", task_assignor=fail)
    group.join("a")
    group.join("b", "x", "y")
    with caplog.at_level(logging.INFO):
        given = group.rebalance()
    assert "of several versions of the topology are not assigned by task_assignor" in caplog.text
    assert sum(len(each.tasks) for each in given.values()) > 0
