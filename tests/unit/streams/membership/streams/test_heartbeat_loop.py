"""Test what the heartbeats of a member of a streams group make of answers, and of lost ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event, Thread
from time import monotonic
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from streams.common.host import SystemHost
from streams.errors import StreamsError
from streams.membership.connection import ConnectionLost
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import MemberTimeouts
from streams.membership.streams import epoch_lock, heartbeat_loop
from streams.membership.streams.described_group import StreamsMemberDescription
from streams.membership.streams.heartbeat_loop import HeartbeatLoop
from streams.membership.streams.heartbeat_request import HeartbeatRefusal, MemberMetadata
from streams.membership.streams.member_state import (
    HeartbeatAnswer,
    MemberHeartbeat,
    MemberPhase,
    acknowledge_tasks,
    mark_offer_taken,
    start_joining,
)
from streams.membership.streams.statuses import GroupStatus, GroupStatusCode
from streams.membership.streams.task_roles import NO_ROLES, TasksByRole
from tests.processes import HANG_LIMIT_S, wait_until

TWO = TasksByRole(frozenset({"0_0", "0_1"}))
FOUR = TasksByRole(frozenset({"0_0", "0_1", "0_2", "0_3"}))
TIMEOUTS = MemberTimeouts(45_000, 3_000, 300_000, 300_000)
Answer = HeartbeatAnswer | HeartbeatRefusal | ConnectionLost


class FakeCoordinator:
    """Answers each heartbeat with the next of `answers`, and describes the member as told."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.described: StreamsMemberDescription | Exception | None = None
        self.sent: list[MemberHeartbeat] = []
        self.connecting: Event | None = None
        """What connecting waits for; None: nothing."""
        self.hangs = False
        """Whether no heartbeat is answered, until it is given up."""

    @contextmanager
    def use_connection(self) -> Iterator[object]:
        if self.connecting is not None:
            assert self.connecting.wait(HANG_LIMIT_S)
        yield object()

    def send_heartbeat(
        self,
        connection: object,
        metadata: object,
        sent: MemberHeartbeat,
        *,
        is_given_up: Callable[[], bool] = lambda: False,
        **_: Any,
    ) -> HeartbeatAnswer | HeartbeatRefusal:
        self.sent.append(sent)
        if self.hangs:
            wait_until(is_given_up, what="a heartbeat that is given up")
            raise ConnectionLost("given up")
        answer = self.answers.pop(0)
        if isinstance(answer, ConnectionLost):
            raise answer
        return answer

    def describe(self, *_: object) -> StreamsMemberDescription | None:
        if isinstance(self.described, Exception):
            raise self.described
        return self.described


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> FakeCoordinator:
    fake = FakeCoordinator()
    monkeypatch.setattr(heartbeat_loop, "send_heartbeat", fake.send_heartbeat)
    monkeypatch.setattr(heartbeat_loop, "describe_streams_member", fake.describe)
    return fake


@pytest.fixture
def loop(coordinator: FakeCoordinator) -> HeartbeatLoop:
    """Return the heartbeats of a member that has joined with epoch 2, and has two tasks."""
    loop = create_loop(coordinator)
    loop.change_state(start_joining)
    coordinator.answers = [answer(2, TWO), answer(2)]
    loop.send_heartbeat_once()
    settle(loop)
    loop.send_heartbeat_once()
    return loop


def create_loop(coordinator: FakeCoordinator, **given: Any) -> HeartbeatLoop:
    return HeartbeatLoop(
        MemberMetadata("group", "member", "process", cast(Any, None), 300_000),
        coordinator=cast(CoordinatorConnection, coordinator),
        host=SystemHost(),
        **{"timeouts": TIMEOUTS, "is_overdue": lambda since_s, after_s: False, **given},
    )


def answer(epoch: int, told: TasksByRole | None = None) -> HeartbeatAnswer:
    return HeartbeatAnswer(epoch, 5_000, told)


def describe(epoch: int, assigned: TasksByRole) -> StreamsMemberDescription:
    return StreamsMemberDescription("member", epoch, "process", "", "", {}, assigned, assigned)


def settle(loop: HeartbeatLoop) -> None:
    """Take what is offered as the stream thread does, and acknowledge it."""
    if loop.state.has_offer:
        loop.change_state(mark_offer_taken)
        loop.change_state(lambda now: acknowledge_tasks(now, now.told))


def lose_answer(loop: HeartbeatLoop, coordinator: FakeCoordinator) -> None:
    coordinator.answers.append(ConnectionLost("lost"))
    with pytest.raises(ConnectionLost):
        loop.send_heartbeat_once()


@pytest.mark.parametrize("assigned", [FOUR, NO_ROLES], ids=["given", "taken away"])
def test_tasks_that_a_lost_answer_told_are_taken_from_the_groups_description(
    loop: HeartbeatLoop, coordinator: FakeCoordinator, assigned: TasksByRole
) -> None:
    lose_answer(loop, coordinator)
    coordinator.answers = [answer(3)]
    coordinator.described = describe(3, assigned)
    loop.send_heartbeat_once()
    assert coordinator.sent[-1].owned == TWO
    settle(loop)
    assert loop.state.owned == assigned


def test_a_description_of_another_epoch_is_asked_for_once_more(
    loop: HeartbeatLoop, coordinator: FakeCoordinator
) -> None:
    lose_answer(loop, coordinator)
    coordinator.answers = [answer(3), answer(3)]
    coordinator.described = describe(2, TWO)
    loop.send_heartbeat_once()
    assert not loop.state.has_offer
    coordinator.described = describe(3, FOUR)
    loop.send_heartbeat_once()
    assert loop.state.told == FOUR


def test_no_description_is_asked_for_where_the_answer_tells_the_tasks(
    loop: HeartbeatLoop, coordinator: FakeCoordinator
) -> None:
    lose_answer(loop, coordinator)
    coordinator.answers = [answer(3, FOUR)]
    coordinator.described = AssertionError("asked")
    loop.send_heartbeat_once()
    assert loop.state.told == FOUR


@pytest.mark.parametrize("described", [None, StreamsError("not allowed")])
def test_a_member_that_cant_learn_its_tasks_joins_anew(
    loop: HeartbeatLoop, coordinator: FakeCoordinator, described: Exception | None
) -> None:
    lose_answer(loop, coordinator)
    coordinator.answers = [answer(3)]
    coordinator.described = described
    assert not loop.send_heartbeat_once()
    assert loop.state.phase is MemberPhase.LOST


@contextmanager
def heartbeat_on_its_way(loop: HeartbeatLoop) -> Iterator[None]:
    """Send a heartbeat in another thread, and wait for its end after the block."""

    def send() -> None:
        with suppress(ConnectionLost):
            loop.send_heartbeat_once()

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join(HANG_LIMIT_S)
        assert not thread.is_alive()


def test_a_commit_does_not_wait_for_a_connection_that_a_heartbeat_opens(
    loop: HeartbeatLoop, coordinator: FakeCoordinator
) -> None:
    coordinator.answers = [answer(2)]
    coordinator.connecting = Event()
    held = Event()
    with heartbeat_on_its_way(loop):

        def commit() -> None:
            with loop.hold_epoch():
                held.set()

        committing = Thread(target=commit)
        committing.start()
        is_held = held.wait(1.0)
        coordinator.connecting.set()
        committing.join(HANG_LIMIT_S)
    assert is_held


def test_a_heartbeat_without_an_answer_gives_way_to_a_commit(
    loop: HeartbeatLoop, coordinator: FakeCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_lock, "COMMIT_WAIT_MAX_S", 0.05)
    coordinator.hangs = True
    sent = len(coordinator.sent)
    with heartbeat_on_its_way(loop):
        wait_until(lambda: len(coordinator.sent) > sent, what="a heartbeat")
        with loop.hold_epoch():
            pass
    assert not loop.state.is_told_certain


def test_a_member_whose_group_is_gone_is_lost_and_joins_anew(
    loop: HeartbeatLoop, coordinator: FakeCoordinator
) -> None:
    coordinator.answers = [HeartbeatRefusal(ErrorCode.group_id_not_found, ""), answer(1, TWO)]
    assert not loop.send_heartbeat_once()
    assert loop.state.phase is MemberPhase.LOST
    loop.change_state(start_joining)
    assert loop.send_heartbeat_once()


def test_a_join_of_a_group_of_another_protocol_is_explained(coordinator: FakeCoordinator) -> None:
    loop = create_loop(coordinator)
    loop.change_state(start_joining)
    coordinator.answers = [HeartbeatRefusal(ErrorCode.group_id_not_found, "it is classic")]
    with pytest.raises(StreamsError, match="can't be joined with group_protocol='streams'"):
        loop.send_heartbeat_once()


def test_a_join_that_is_refused_is_repeated_after_a_while(coordinator: FakeCoordinator) -> None:
    loop = create_loop(coordinator)
    loop.change_state(start_joining)
    refusal = HeartbeatRefusal(ErrorCode.fenced_member_epoch, "")
    coordinator.answers = [*[refusal] * 2, *[answer(1, TWO)] * 100]
    began_s = monotonic()
    loop.ensure_started()
    wait_until(lambda: loop.state.is_member, what="a member")
    assert monotonic() - began_s >= 2 * heartbeat_loop._JOIN_BACK_OFF_S
    loop.end_thread()


def join_with_statuses(
    coordinator: FakeCoordinator, *answers: HeartbeatAnswer, is_overdue: bool = False
) -> HeartbeatLoop:
    """Join by the thread of the heartbeats, whose last answer is repeated for ever."""
    coordinator.answers = [*answers, *[answers[-1]] * 1_000]
    quick = TIMEOUTS._replace(heartbeat_ms=10)
    loop = create_loop(coordinator, timeouts=quick, is_overdue=lambda since_s, after_s: is_overdue)
    loop.change_state(start_joining)
    loop.ensure_started()
    return loop


def tell(status: GroupStatusCode) -> HeartbeatAnswer:
    return replace(answer(2, NO_ROLES), statuses=(GroupStatus(status, "so it is."),))


def wait_for_failure(loop: HeartbeatLoop) -> str:
    def has_failed() -> bool:
        try:
            loop.raise_failure_if_any()
        except StreamsError:
            return True
        return False

    wait_until(has_failed, what="the end of the heartbeats")
    with pytest.raises(StreamsError) as failure:
        loop.raise_failure_if_any()
    loop.end_thread()
    return f"{failure.value.code}: {failure.value}"


def test_wrong_partition_counts_end_the_heartbeats(coordinator: FakeCoordinator) -> None:
    loop = join_with_statuses(coordinator, tell(GroupStatusCode.INCORRECTLY_PARTITIONED_TOPICS))
    assert wait_for_failure(loop).startswith("MR-036: group 'group': topics have wrong numbers")


@pytest.mark.parametrize(
    "status", [GroupStatusCode.MISSING_SOURCE_TOPICS, GroupStatusCode.MISSING_INTERNAL_TOPICS]
)
def test_topics_that_stay_missing_end_the_heartbeats_after_the_tasks_time_out(
    coordinator: FakeCoordinator, status: GroupStatusCode
) -> None:
    loop = join_with_statuses(coordinator, tell(status), is_overdue=True)
    failure = wait_for_failure(loop)
    assert failure.startswith("MR-035: group 'group' has no tasks yet, the broker says: so it is.")
    assert failure.endswith("task_timeout_ms)")


def test_topics_that_are_created_in_time_let_the_member_have_its_tasks(
    coordinator: FakeCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    missing = tell(GroupStatusCode.MISSING_SOURCE_TOPICS)
    loop = join_with_statuses(coordinator, missing, missing, answer(3, TWO))
    wait_until(lambda: loop.state.told == TWO, what="the tasks")
    assert loop.state.has_offer
    loop.raise_failure_if_any()
    loop.end_thread()
    assert caplog.text.count("has no tasks yet") == 1


@pytest.mark.parametrize(
    "status", [GroupStatusCode.ASSIGNMENT_DELAYED, GroupStatusCode.MISSING_SOURCE_TOPICS]
)
def test_a_member_of_a_group_that_is_not_ready_is_offered_nothing(
    loop: HeartbeatLoop, coordinator: FakeCoordinator, status: GroupStatusCode
) -> None:
    loop.change_state(start_joining)
    coordinator.answers = [tell(status)]
    loop.send_heartbeat_once()
    assert not loop.state.has_offer


def test_a_shutdown_of_the_application_is_an_offer_to_a_member_with_its_tasks(
    loop: HeartbeatLoop, coordinator: FakeCoordinator
) -> None:
    coordinator.answers = [replace(tell(GroupStatusCode.SHUTDOWN_APPLICATION), told=None)]
    loop.send_heartbeat_once()
    assert loop.state.has_offer
    assert loop.state.owned == TWO
