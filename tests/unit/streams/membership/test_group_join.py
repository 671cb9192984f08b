"""Test that a member goes on in its old generation while a thread of its own joins the group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from coordinator.assignors.consumer_protocol import (
    encode_subscription as encode_foreign_subscription,
)
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.group_member import Membership, MembershipSignal
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo, encode_subscription
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.membership.fakes import (
    DECLARED,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    Worker,
    create_join_response,
    create_sync_response,
)

NewWorker = Callable[..., Worker]
ONE_TASK = AssignmentInfo(("0_0",), (("in", 0),))
FIRST = Membership(1, "member-1")


class Gate:
    """Holds an answer of the coordinator back until the test opens the gate."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, given_up: Callable[[], bool]) -> Mapping[str, Any]:
        self.reached.set()
        wait_until(lambda: self.opened.is_set() or given_up(), what="the gate")
        return self.answer


def start_second_join(worker: Worker, api_key: int, answer: Mapping[str, Any]) -> Gate:
    """Join once, and start another join whose answer of this API is held back."""
    worker.join()
    gate = Gate(answer)
    if api_key == SYNC:
        worker.coordinator.answer(JOIN, create_join_response(2))
    worker.coordinator.answer(api_key, gate)
    worker.member.start_joining(SubscriptionInfo(("0_0",), generation=1))
    assert gate.reached.wait(HANG_LIMIT_S)
    return gate


def list_join_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "worker-0-join"]


def wait_until_join_thread_ends() -> None:
    wait_until(lambda: not list_join_threads(), what="the end of the join's thread")


def take(worker: Worker) -> AssignmentInfo | None:
    return worker.member.enter_assigned_generation(HANG_LIMIT_S)


def test_offsets_have_the_old_generation_until_the_assignment_is_taken(worker: Worker) -> None:
    gate = start_second_join(worker, JOIN, create_join_response(2))
    worker.coordinator.answer(SYNC, create_sync_response(ONE_TASK))
    assert worker.member.enter_assigned_generation() is None
    assert worker.member.is_joining
    assert not worker.member.is_generation_over
    assert worker.member.current_membership == FIRST
    gate.opened.set()
    wait_until(
        lambda: worker.member.read_current_signal_or_raise() is MembershipSignal.ASSIGNED,
        what="an assignment",
    )
    assert worker.member.current_membership == FIRST
    assert worker.member.is_generation_over
    assert take(worker) == ONE_TASK
    assert worker.member.current_membership == Membership(2, "member-1")
    assert not worker.member.is_joining
    assert not worker.member.is_generation_over
    assert worker.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_the_generation_is_over_when_the_join_is_answered_before_it_is_synced(
    worker: Worker,
) -> None:
    gate = start_second_join(worker, SYNC, create_sync_response(ONE_TASK))
    assert worker.member.is_generation_over
    assert worker.member.current_membership == FIRST
    assert worker.member.read_current_signal_or_raise() is MembershipSignal.NOTHING
    gate.opened.set()
    assert take(worker) == ONE_TASK


def test_a_round_that_is_over_before_the_sync_leaves_the_generation_over(worker: Worker) -> None:
    over = {**create_sync_response(ONE_TASK), "error_code": ErrorCode.rebalance_in_progress}
    gate = start_second_join(worker, SYNC, over)
    later = Gate(create_join_response(3))
    worker.coordinator.answer(JOIN, later)
    worker.coordinator.answer(SYNC, create_sync_response(ONE_TASK))
    gate.opened.set()
    assert later.reached.wait(HANG_LIMIT_S)
    assert worker.member.is_generation_over
    later.opened.set()
    assert take(worker) == ONE_TASK
    assert worker.member.current_membership.generation == 3


def test_other_requests_are_answered_while_a_join_is_not(worker: Worker) -> None:
    gate = start_second_join(worker, JOIN, create_join_response(2))
    assert worker.member.is_membership_confirmed()
    assert worker.coordinator.sent(SYNC)[-1].generation_id == 1
    gate.opened.set()
    assert take(worker) is not None


def test_no_heartbeat_is_sent_until_the_join_is_answered_and_then_for_the_new_generation(
    new_worker: NewWorker,
) -> None:
    """Test what the coordinator expects: a member that waits for its answer needs none."""
    worker = new_worker(heartbeat_ms=1)
    gate = start_second_join(worker, JOIN, create_join_response(2))
    worker.coordinator.requests.clear()
    # A heartbeat of before may have been on its way; those that are sent now are of generation 2.
    gate.opened.set()
    wait_until(
        lambda: any(each.generation_id == 2 for each in worker.coordinator.sent(HEARTBEAT)),
        what="a heartbeat, although the assignment was not taken",
    )
    assert take(worker) is not None
    worker.member.leave_group()
    generations = [each.generation_id for each in worker.coordinator.sent(HEARTBEAT)]
    assert set(generations[1:]) <= {2}


def test_a_leader_sends_heartbeats_while_it_assigns(new_worker: NewWorker) -> None:
    """Test what keeps it in the group: its session goes on between JoinGroup and SyncGroup."""
    worker = new_worker(heartbeat_ms=1)

    def wait_for_heartbeats(members: object) -> dict[str, AssignmentInfo]:
        del members
        wait_until(lambda: len(worker.coordinator.sent(HEARTBEAT)) > 3, what="heartbeats")
        assert worker.member.read_current_signal_or_raise() is MembershipSignal.NOTHING
        return {"member-1": ONE_TASK}

    worker.plan = wait_for_heartbeats
    worker.coordinator.refuse(HEARTBEAT, *[ErrorCode.none] * 2, ErrorCode.rebalance_in_progress)
    worker.coordinator.answer(JOIN, lead_generation(2, "member-1"))
    worker.coordinator.answer(SYNC, create_sync_response(ONE_TASK))
    assert worker.join() == ONE_TASK
    beats = {(each.generation_id, each.member_id) for each in worker.coordinator.sent(HEARTBEAT)}
    assert beats == {(2, "member-1")}
    # The group has begun another rebalance while the leader assigned.
    assert worker.member.read_current_signal_or_raise() is MembershipSignal.REBALANCE


def test_a_join_that_has_failed_ends_its_heartbeats(new_worker: NewWorker) -> None:
    worker = new_worker(heartbeat_ms=1)
    worker.plan = OutcomeUnknown("no broker answers")
    worker.coordinator.answer(JOIN, lead_generation(2, "member-1"))
    worker.member.start_joining(SubscriptionInfo(()))
    with pytest.raises(OutcomeUnknown):
        take(worker)
    assert worker.member.current_membership == Membership(-1, "member-1")


def test_a_member_that_is_forgotten_again_and_again_gives_up(
    new_worker: NewWorker, caplog: pytest.LogCaptureFixture
) -> None:
    """Test a group that could never assign: each time before the leader has sent SyncGroup."""
    worker = new_worker(give_up_ms=60_000)
    caplog.set_level("INFO")

    def forget(_: object) -> dict[str, Any]:
        worker.clock.elapsed_s += 8
        return {**create_sync_response(ONE_TASK), "error_code": ErrorCode.unknown_member_id}

    worker.coordinator.answer(SYNC, *[forget] * 20)
    worker.member.start_joining(SubscriptionInfo(()))
    with pytest.raises(StreamsError, match=r"can't join group 'a': SyncGroup .* \(for 64 s\)"):
        take(worker)
    assert len(worker.coordinator.sent(SYNC)) == 9
    assert "joining again: SyncGroup was answered with unknown_member_id" in caplog.text


def test_what_assigning_raises_ends_the_join_on_the_stream_thread(worker: Worker) -> None:
    worker.join()
    worker.plan = OutcomeUnknown("no broker answers")
    members = {"member-1": encode_subscription(["in"], SubscriptionInfo(()), DECLARED)}
    worker.coordinator.answer(JOIN, create_join_response(2, leader="member-1", members=members))
    worker.member.start_joining(SubscriptionInfo(("0_0",), generation=1))
    with pytest.raises(OutcomeUnknown, match="no broker answers"):
        take(worker)
    assert not worker.member.is_joining
    assert worker.member.is_generation_over, "the group has begun a generation without it"
    worker.coordinator.answer(JOIN, create_join_response(3))
    assert worker.join("0_0") is not None
    assert not worker.member.is_generation_over
    assert [join.member_id for join in worker.coordinator.sent(JOIN)][-1] == "member-1"


def lead_generation(generation: int, *members: str) -> dict[str, Any]:
    """Return the answer of a JoinGroup by which `member-1` leads these members."""
    subscription = encode_subscription(["in"], SubscriptionInfo(()), DECLARED)
    return create_join_response(
        generation, leader="member-1", members=dict.fromkeys(members, subscription)
    )


@pytest.mark.parametrize(
    ("entered", "kept"),
    [
        (lead_generation(2, "member-1", "new"), [{"member-1", "new"}]),
        (create_join_response(2), []),
        (create_join_response(2, leader="member-1", skip_assignment=True), []),
    ],
    ids=["leads", "follows", "leads without assigning"],
)
def test_transactions_are_aborted_by_the_members_of_the_generation_that_is_entered(
    worker: Worker, entered: Mapping[str, Any], kept: list[set[str]]
) -> None:
    """Test that a member that has led an attempt which failed does not abort by its members."""
    worker.coordinator.answer(JOIN, lead_generation(1, "member-1", "old"), entered)
    over = {**create_sync_response(ONE_TASK), "error_code": ErrorCode.rebalance_in_progress}
    worker.coordinator.answer(SYNC, over, create_sync_response(ONE_TASK))
    assert worker.join() == ONE_TASK
    wait_until_join_thread_ends()
    assert worker.kept_from_abort == kept


@pytest.mark.parametrize(
    "end_generation",
    [
        lambda worker: worker.join(),
        lambda worker: worker.member.leave_group(),
        lambda worker: worker.member.end_without_leaving_group(),
        lambda worker: worker.stop.set(),
    ],
    ids=["joins again", "leaves", "hands over", "is stopped"],
)
def test_transactions_are_aborted_while_the_member_is_in_the_generation_that_it_led(
    worker: Worker, end_generation: Callable[[Worker], object]
) -> None:
    worker.coordinator.answer(JOIN, lead_generation(1, "member-1"))
    worker.join()
    wait_until_join_thread_ends()
    (may_abort,) = worker.may_abort
    assert may_abort()
    end_generation(worker)
    assert not may_abort()


def test_a_member_whose_user_data_have_no_tasks_ends_the_join_of_the_leader(
    worker: Worker,
) -> None:
    foreign = ConsumerSubscription(("in",), b'{"format": 1}')
    members = {"foreign": encode_foreign_subscription(foreign)}
    worker.coordinator.answer(JOIN, create_join_response(1, leader="member-1", members=members))
    with pytest.raises(StreamsError, match="not of this application"):
        worker.join()


@pytest.mark.parametrize("api_key", [JOIN, SYNC])
def test_leaving_while_a_join_is_unanswered_gives_it_up(worker: Worker, api_key: int) -> None:
    start_second_join(worker, api_key, {})
    worker.member.leave_group()
    (leave,) = worker.coordinator.sent(LEAVE)
    assert [each.member_id for each in leave.members] == ["member-1"]
    assert worker.coordinator.open == set()
    assert not list_join_threads()


def test_a_membership_can_be_handed_over_while_a_join_is_unanswered(worker: Worker) -> None:
    start_second_join(worker, JOIN, {})
    worker.member.end_without_leaving_group()
    assert worker.coordinator.sent(LEAVE) == []
    assert worker.coordinator.open == set()
    assert not list_join_threads()


def test_a_thread_that_is_stuck_while_it_joins_leaves_when_the_join_is_over(
    new_worker: NewWorker,
) -> None:
    worker = new_worker(heartbeat_ms=1)
    gate = start_second_join(worker, JOIN, create_join_response(2))
    worker.clock.elapsed_s += 301
    gate.opened.set()
    wait_until(lambda: bool(worker.coordinator.sent(LEAVE)), what="a leave")
    assert take(worker) is not None
    assert worker.member.read_current_signal_or_raise() is MembershipSignal.LOST
