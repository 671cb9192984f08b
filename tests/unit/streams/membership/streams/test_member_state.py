"""Test what a member of a streams group sends, and what answers change: its table of states."""

from __future__ import annotations

from dataclasses import replace

from streams.membership.protocol import EndpointTasks
from streams.membership.streams.member_state import (
    EndpointsTold,
    HeartbeatAnswer,
    MemberHeartbeat,
    MemberPhase,
    TaskMembership,
    acknowledge_tasks,
    apply_answer,
    apply_loss,
    apply_lost_answer,
    apply_sent_heartbeat,
    build_heartbeat,
    mark_offer_taken,
    repeat_offer,
    start_joining,
)
from streams.membership.streams.statuses import GroupStatus, GroupStatusCode
from streams.membership.streams.task_roles import NO_ROLES, TasksByRole

ONE = TasksByRole(frozenset({"0_0"}))
BOTH = TasksByRole(frozenset({"0_0", "0_1"}))


def answer(epoch: int, told: TasksByRole | None = None, **fields: object) -> HeartbeatAnswer:
    return HeartbeatAnswer(epoch, 5_000, told, **fields)  # type: ignore[arg-type]


def send(state: TaskMembership, answered: HeartbeatAnswer) -> TaskMembership:
    """Send the heartbeat of a state, and apply its answer."""
    sent = build_heartbeat(state)
    return apply_answer(apply_sent_heartbeat(state, sent), sent, answered)


def settle(told: TasksByRole, epoch: int = 2) -> TaskMembership:
    """Return a member that has joined, and has what it was told."""
    state = mark_offer_taken(send(start_joining(TaskMembership()), answer(epoch, told)))
    return send(acknowledge_tasks(state, told), answer(epoch))


def test_a_member_joins_with_epoch_0_and_no_tasks() -> None:
    state = start_joining(TaskMembership())
    assert state.is_heartbeat_due
    assert build_heartbeat(state) == MemberHeartbeat(1, 0, NO_ROLES)
    joined = send(state, answer(2, ONE))
    assert (joined.phase, joined.epoch, joined.told) == (MemberPhase.JOINED, 2, ONE)
    assert joined.has_offer


def test_a_task_is_reported_once_it_is_acknowledged_and_then_no_more() -> None:
    joined = send(start_joining(TaskMembership()), answer(2, BOTH))
    taken = mark_offer_taken(joined)
    assert not taken.has_offer
    assert not taken.is_heartbeat_due, "the stream thread has not brought its tasks to it yet"
    assert build_heartbeat(taken).owned is None
    having = acknowledge_tasks(taken, BOTH)
    assert having.is_heartbeat_due
    assert build_heartbeat(having) == MemberHeartbeat(1, 2, BOTH)
    assert build_heartbeat(send(having, answer(2))).owned is None


def test_a_task_that_is_to_be_revoked_is_reported_until_it_is_closed() -> None:
    state = send(settle(BOTH), answer(2, ONE))
    assert state.has_offer
    revoking = mark_offer_taken(state)
    lost = apply_lost_answer(revoking)
    assert build_heartbeat(lost).owned == BOTH, "it is not closed yet"
    assert build_heartbeat(acknowledge_tasks(revoking, ONE)).owned == ONE


def test_after_a_lost_answer_the_tasks_are_reported_again() -> None:
    state = settle(BOTH)
    sent = build_heartbeat(state)
    assert sent.owned is None
    assert build_heartbeat(apply_lost_answer(apply_sent_heartbeat(state, sent))).owned == BOTH


def test_an_acknowledgement_whose_answer_was_lost_is_sent_again() -> None:
    state = acknowledge_tasks(mark_offer_taken(send(settle(BOTH), answer(3, ONE))), ONE)
    sent = build_heartbeat(state)
    state = apply_lost_answer(apply_sent_heartbeat(state, sent))
    assert state.is_heartbeat_due
    assert build_heartbeat(state).owned == ONE


def test_what_is_told_while_tasks_move_is_offered_afterwards() -> None:
    moving = mark_offer_taken(send(settle(ONE), answer(3, BOTH)))
    told_more = send(moving, answer(4, ONE))
    assert told_more.has_offer
    assert acknowledge_tasks(told_more, BOTH).has_offer
    assert build_heartbeat(acknowledge_tasks(told_more, BOTH)).owned == BOTH


def test_a_member_that_is_refused_is_lost_and_joins_anew_with_nothing() -> None:
    state = settle(BOTH)
    lost = apply_loss(state, build_heartbeat(state))
    assert lost.phase is MemberPhase.LOST
    assert not lost.has_offer
    assert build_heartbeat(start_joining(lost)) == MemberHeartbeat(2, 0, NO_ROLES)
    assert start_joining(lost).taken is None


def test_an_answer_of_before_the_last_join_changes_nothing() -> None:
    state = settle(BOTH)
    sent = build_heartbeat(state)
    again = start_joining(state)
    assert apply_answer(again, sent, answer(7, ONE)) == again
    assert apply_loss(again, sent) == again
    assert apply_sent_heartbeat(again, sent) == again


def test_an_answer_to_a_member_that_is_lost_changes_nothing() -> None:
    state = settle(BOTH)
    sent = build_heartbeat(state)
    lost = apply_loss(state, sent)
    assert apply_answer(lost, sent, answer(3)) == lost


def test_a_member_is_offered_nothing_while_the_group_is_not_ready() -> None:
    delayed = (GroupStatus(GroupStatusCode.ASSIGNMENT_DELAYED, "later"),)
    state = send(start_joining(TaskMembership()), answer(1, NO_ROLES, statuses=delayed))
    assert not state.has_offer
    assert send(state, answer(2)).has_offer, "the group is ready, and has no task for it"
    assert send(state, answer(2, ONE)).has_offer


def test_a_group_that_is_not_ready_any_more_takes_the_tasks_away() -> None:
    missing = (GroupStatus(GroupStatusCode.MISSING_SOURCE_TOPICS, "gone"),)
    state = send(settle(ONE), answer(3, NO_ROLES, statuses=missing))
    assert state.has_offer


def test_endpoints_alone_are_an_offer_too_and_their_epoch_is_sent() -> None:
    endpoints = EndpointsTold(4, {"host:1": EndpointTasks(("0_0",))})
    state = send(settle(ONE), answer(2, endpoints=endpoints))
    assert state.has_offer
    assert build_heartbeat(mark_offer_taken(state)).endpoint_epoch == 4


def test_a_lost_membership_takes_no_acknowledgement() -> None:
    state = settle(BOTH)
    lost = apply_loss(state, build_heartbeat(state))
    assert acknowledge_tasks(lost, ONE) == lost
    assert replace(lost, phase=MemberPhase.JOINED).owned == BOTH


def test_what_was_taken_and_not_acknowledged_is_offered_once_more() -> None:
    moving = mark_offer_taken(send(settle(BOTH), answer(3, ONE)))
    again = repeat_offer(moving)
    assert again.has_offer
    assert build_heartbeat(again).owned == BOTH, "nothing is closed yet"
    none_left = repeat_offer(mark_offer_taken(send(settle(ONE), answer(3, NO_ROLES))))
    assert none_left.has_offer


def test_a_shutdown_of_the_application_is_offered_though_no_task_changes() -> None:
    shutdown = (GroupStatus(GroupStatusCode.SHUTDOWN_APPLICATION, "a member asks for it"),)
    assert send(settle(ONE), answer(2, statuses=shutdown)).has_offer
