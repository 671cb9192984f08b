"""Test what a member of the classic protocol does for each answer of the coordinator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import StreamsError, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import Membership
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from streams.topology.declared import DeclaredTopology
from tests.unit.streams.membership.fakes import (
    COORDINATOR,
    DECLARED,
    FIND,
    JOIN,
    LEAVE,
    SYNC,
    Worker,
    create_join_response,
    create_sync_response,
)

NewWorker = Callable[..., Worker]
ONE_TASK = AssignmentInfo(("0_0",), (("in", 0),))


def subscribed(*tasks: str) -> bytes:
    return encode_subscription(["in"], SubscriptionInfo(tasks), DECLARED)


def test_a_member_joins_as_a_static_one_and_says_which_tasks_it_runs(worker: Worker) -> None:
    worker.coordinator.answer(SYNC, create_sync_response(ONE_TASK))
    assert worker.join("0_0") == ONE_TASK
    (join,) = worker.coordinator.sent(JOIN)
    (protocol,) = join.protocols
    assert (join.group_id, join.group_instance_id, join.member_id) == ("a", "worker-0", "")
    assert (join.protocol_type, protocol.name) == ("consumer", "stream")
    said = SubscriptionInfo(("0_0",), topics=("in",), topology=DECLARED)
    assert decode_subscription(protocol.metadata) == said


def test_the_membership_is_that_of_the_generation_joined(worker: Worker) -> None:
    assert worker.member.current_membership == Membership(-1, "")
    worker.coordinator.answer(JOIN, create_join_response(5, "member-9"))
    worker.join()
    assert worker.member.current_membership == Membership(5, "member-9")


def test_each_join_has_a_connection_of_its_own_which_it_closes(worker: Worker) -> None:
    """Test that a JoinGroup without an answer holds up no other request of the member."""
    worker.join()
    assert worker.member.is_membership_confirmed()
    kept = set(worker.coordinator.open)
    worker.join()
    assert worker.member.is_membership_confirmed()
    assert worker.coordinator.dialled == [None, COORDINATOR] * 3
    assert worker.coordinator.open == kept
    assert len(kept) == 1


def test_a_member_that_must_have_an_id_joins_again_with_the_one_it_is_given(
    worker: Worker,
) -> None:
    required = {**create_join_response(-1, "given"), "error_code": ErrorCode.member_id_required}
    worker.coordinator.answer(JOIN, required)
    worker.join()
    assert [join.member_id for join in worker.coordinator.sent(JOIN)] == ["", "given"]
    assert worker.member.current_membership == Membership(1, "given")


def test_a_member_comes_back_with_the_id_that_it_has(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(JOIN, create_join_response(2))
    worker.join("0_0")
    assert [join.member_id for join in worker.coordinator.sent(JOIN)] == ["", "member-1"]
    assert worker.member.current_membership == Membership(2, "member-1")


LOST = [
    ErrorCode.unknown_member_id,
    ErrorCode.illegal_generation,
    ErrorCode.fenced_instance_id,
]


def refused(code: ErrorCode) -> dict[str, object]:
    return {**create_join_response(-1, ""), "error_code": code}


@pytest.mark.parametrize("code", LOST)
def test_a_member_without_tasks_that_is_not_known_any_more_joins_as_a_new_one(
    worker: Worker, code: ErrorCode
) -> None:
    worker.join()
    worker.coordinator.answer(JOIN, refused(code))
    worker.join()
    assert [join.member_id for join in worker.coordinator.sent(JOIN)] == ["", "member-1", ""]


@pytest.mark.parametrize("code", LOST)
def test_a_member_with_tasks_that_is_not_known_any_more_has_lost_them(
    worker: Worker, code: ErrorCode
) -> None:
    worker.join()
    worker.coordinator.answer(JOIN, refused(code))
    with pytest.raises(TaskMigrated):
        worker.join("0_0")
    assert len(worker.coordinator.sent(JOIN)) == 2
    assert worker.member.current_membership == Membership(-1, "")


@pytest.mark.parametrize("code", [ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation])
def test_a_round_that_is_over_before_the_sync_is_joined_anew_with_the_same_id(
    worker: Worker, code: ErrorCode
) -> None:
    worker.coordinator.answer(
        SYNC, {"error_code": code, "assignment": b""}, create_sync_response(ONE_TASK)
    )
    worker.coordinator.answer(JOIN, create_join_response(1), create_join_response(2))
    assert worker.join("0_0") == ONE_TASK
    assert [join.member_id for join in worker.coordinator.sent(JOIN)] == ["", "member-1"]
    assert worker.member.current_membership.generation == 2


def test_a_member_fenced_at_the_sync_has_lost_its_tasks(worker: Worker) -> None:
    fenced = {"error_code": ErrorCode.fenced_instance_id, "assignment": b""}
    worker.coordinator.answer(SYNC, fenced)
    with pytest.raises(TaskMigrated):
        worker.join("0_0")


def test_a_leader_plans_for_all_members_by_what_they_run(worker: Worker) -> None:
    members = {"member-1": subscribed("0_0"), "other": subscribed()}
    worker.plan = {"member-1": ONE_TASK, "other": AssignmentInfo((), ())}
    worker.coordinator.answer(JOIN, create_join_response(leader="member-1", members=members))
    worker.join()
    assert worker.planned == [
        {
            "member-1": SubscriptionInfo(("0_0",), topics=("in",), topology=DECLARED),
            "other": SubscriptionInfo((), topics=("in",), topology=DECLARED),
        }
    ]
    (sync,) = worker.coordinator.sent(SYNC)
    sent = {each.member_id: decode_assignment(each.assignment) for each in sync.assignments}
    assert sent == worker.plan


def test_a_follower_does_not_plan(worker: Worker) -> None:
    worker.coordinator.answer(JOIN, create_join_response(leader="other"))
    worker.join()
    assert worker.planned == []
    (sync,) = worker.coordinator.sent(SYNC)
    assert sync.assignments == ()


def test_a_leader_that_is_to_skip_the_assignment_does_not_plan(worker: Worker) -> None:
    members = {"member-1": subscribed("0_0")}
    answer = create_join_response(leader="member-1", members=members, skip_assignment=True)
    worker.coordinator.answer(JOIN, answer)
    worker.join()
    assert worker.planned == []
    (sync,) = worker.coordinator.sent(SYNC)
    assert sync.assignments == ()


def test_members_of_another_application_are_named_as_such(worker: Worker) -> None:
    members = {"member-1": subscribed(), "foreign": b"\0\1foreign"}
    worker.coordinator.answer(JOIN, create_join_response(leader="member-1", members=members))
    with pytest.raises(StreamsError, match="group 'a' has members that are not of this app"):
        worker.join()


def test_an_assignment_by_another_application_is_named_as_such(worker: Worker) -> None:
    worker.coordinator.answer(SYNC, {"assignment": b"\0\1foreign"})
    with pytest.raises(StreamsError, match="group 'a' has members that are not of this app"):
        worker.join()


AWAY = [
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
]


@pytest.mark.parametrize("code", AWAY)
def test_a_coordinator_that_is_elsewhere_is_found_again(worker: Worker, code: ErrorCode) -> None:
    worker.coordinator.answer(JOIN, refused(code))
    worker.join()
    assert worker.coordinator.dialled == [None, COORDINATOR] * 2
    assert worker.coordinator.open == set()


def test_a_lost_connection_is_made_again_and_the_join_repeated_with_the_same_id(
    worker: Worker,
) -> None:
    worker.join()
    worker.coordinator.answer(JOIN, ConnectionLost("gone"))
    worker.join("0_0")
    ids = [join.member_id for join in worker.coordinator.sent(JOIN)]
    assert ids == ["", "member-1", "member-1"]


def test_a_coordinator_that_is_not_found_for_give_up_ms_ends_the_member(
    new_worker: NewWorker,
) -> None:
    worker = new_worker(give_up_ms=1_000)

    def a_second_later(given_up: Callable[[], bool]) -> dict[str, object]:
        worker.clock.elapsed_s += 1.0
        raise ConnectionLost("nobody there")

    worker.coordinator.answer(FIND, *[a_second_later] * 10)
    with pytest.raises(StreamsError, match="can't join group 'a': nobody there"):
        worker.join()
    # The first failure starts the clock; at exactly a second the limit is not exceeded yet.
    assert len(worker.coordinator.sent(FIND)) == 3


def test_a_long_wait_for_the_others_is_no_trouble(new_worker: NewWorker) -> None:
    worker = new_worker(give_up_ms=1_000)

    def after_a_long_time(given_up: Callable[[], bool]) -> dict[str, object]:
        worker.clock.elapsed_s += 300.0
        return create_join_response()

    worker.coordinator.answer(JOIN, after_a_long_time)
    worker.coordinator.answer(SYNC, ConnectionLost("gone"), create_sync_response(ONE_TASK))
    assert worker.join() == ONE_TASK


def test_what_the_coordinator_refuses_for_good_ends_the_member(worker: Worker) -> None:
    worker.coordinator.answer(JOIN, refused(ErrorCode.group_max_size_reached))
    with pytest.raises(StreamsError, match=r"refused to join .*'worker-0'.*\(81\)"):
        worker.join()


def test_leaving_says_the_instance_so_that_a_static_member_goes_at_once(worker: Worker) -> None:
    worker.join()
    worker.member.leave_group()
    (leave,) = worker.coordinator.sent(LEAVE)
    (identity,) = leave.members
    assert (identity.member_id, identity.group_instance_id) == ("member-1", "worker-0")
    assert worker.member.current_membership == Membership(-1, "")
    assert worker.coordinator.open == set()


@pytest.mark.parametrize(
    ("has_failed", "reason"),
    [(False, "the worker was closed"), (True, "its thread ended after an error")],
)
def test_leaving_says_whether_an_error_is_the_reason(
    worker: Worker, has_failed: bool, reason: str
) -> None:
    worker.join()
    worker.member.leave_group(has_failed=has_failed)
    (leave,) = worker.coordinator.sent(LEAVE)
    assert [each.reason for each in leave.members] == [reason]


def test_a_member_that_never_joined_leaves_without_a_word(worker: Worker) -> None:
    worker.member.leave_group()
    assert worker.coordinator.requests == []


def test_a_place_that_is_handed_over_stays_in_the_group_and_may_be_given_up_later(
    worker: Worker,
) -> None:
    worker.join()
    worker.member.end_without_leaving_group()
    assert worker.coordinator.sent(LEAVE) == []
    assert worker.coordinator.open == set()
    worker.member.leave_group(is_handed_over=True)
    (leave,) = worker.coordinator.sent(LEAVE)
    (identity,) = leave.members
    assert (identity.member_id, identity.group_instance_id) == ("", "worker-0")


def test_leaving_does_not_need_an_answer(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(LEAVE, ConnectionLost("gone"))
    worker.member.leave_group()
    assert worker.coordinator.open == set()


def stopped(worker: Worker) -> Callable[[Callable[[], bool]], dict[str, object]]:
    """Return an answer that stops the worker while it joins, so that the answer is never read."""

    def wait(given_up: Callable[[], bool]) -> dict[str, object]:
        worker.stop.set()
        assert given_up()
        raise ConnectionLost("given up")

    return wait


def test_a_stop_during_the_first_join_leaves_by_the_instance_alone(worker: Worker) -> None:
    worker.coordinator.answer(JOIN, stopped(worker))
    assert worker.join() is None
    worker.member.leave_group()
    (leave,) = worker.coordinator.sent(LEAVE)
    (identity,) = leave.members
    assert (identity.member_id, identity.group_instance_id) == ("", "worker-0")


@pytest.mark.parametrize("api_key", [JOIN, SYNC])
def test_a_stop_during_a_later_join_leaves_as_the_member_that_it_was(
    worker: Worker, api_key: int
) -> None:
    worker.join()
    worker.coordinator.answer(api_key, stopped(worker))
    assert worker.join("0_0") is None
    worker.member.leave_group()
    (leave,) = worker.coordinator.sent(LEAVE)
    assert [identity.member_id for identity in leave.members] == ["member-1"]


def test_a_member_that_was_replaced_does_not_make_its_successor_leave(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(JOIN, refused(ErrorCode.fenced_instance_id))
    with pytest.raises(TaskMigrated):
        worker.join("0_0")
    worker.member.leave_group()
    assert worker.coordinator.sent(LEAVE) == []


def test_a_static_member_whose_topology_has_changed_joins_anew(new_worker: NewWorker) -> None:
    """Test that a changed static member joins anew, as the coordinator returns its old assignment.

    The coordinator answers a known static member with the assignment it had, without asking the
    leader.
    """
    worker = new_worker(topology=DeclaredTopology("now", {}, {}))
    before = AssignmentInfo(("0_0",), (("in", 0),), fingerprint="before", leader="before")
    after = AssignmentInfo(("1_0",), (("in", 0),), fingerprint="now", leader="before")
    worker.coordinator.answer(JOIN, create_join_response(1, "m"), create_join_response(2, "m"))
    worker.coordinator.answer(SYNC, create_sync_response(before), create_sync_response(after))
    assert worker.join() == after
    first, second = worker.coordinator.sent(JOIN)
    assert [join.member_id for join in (first, second)] == ["", ""]
    (leave,) = worker.coordinator.sent(LEAVE)
    (member,) = leave.members
    assert (member.member_id, member.group_instance_id) == ("m", "worker-0")
    assert member.reason == "the topology has changed"
    assert worker.member.current_membership == Membership(2, "m")


@pytest.mark.parametrize("fingerprint", ["now", ""])
def test_a_static_member_with_its_old_topology_gets_its_tasks_back_at_once(
    new_worker: NewWorker, fingerprint: str
) -> None:
    worker = new_worker(topology=DeclaredTopology("now", {}, {}))
    kept = ONE_TASK._replace(fingerprint=fingerprint, leader=fingerprint)
    worker.coordinator.answer(SYNC, create_sync_response(kept))
    assert worker.join() == kept
    assert not worker.coordinator.sent(LEAVE)
