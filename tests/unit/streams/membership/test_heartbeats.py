"""Test that a heartbeat's signal applies only to the generation in which it was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import AuthenticationError
from streams.membership.connection import ConnectionLost, ConnectionUnanswered
from streams.membership.group_member import MembershipSignal
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.membership.fakes import HEARTBEAT, JOIN, LEAVE, Worker, create_join_response

NewWorker = Callable[..., Worker]


@pytest.fixture
def beating(new_worker: NewWorker) -> Worker:
    """Return a worker that sends a heartbeat each millisecond."""
    return new_worker(heartbeat_ms=1)


def wait_for_beats(worker: Worker, more: int) -> None:
    """Wait until `more` heartbeats have arrived beyond those that have arrived so far."""
    wanted = len(worker.coordinator.sent(HEARTBEAT)) + more
    wait_until(
        lambda: len(worker.coordinator.sent(HEARTBEAT)) >= wanted,
        what=f"{wanted} heartbeats",
    )


def wait_for_signal(worker: Worker, signal: MembershipSignal) -> None:
    wait_until(
        lambda: worker.member.read_current_signal_or_raise() is signal, what=f"signal {signal.name}"
    )


def test_heartbeats_name_the_member_and_its_generation(beating: Worker) -> None:
    beating.coordinator.answer(JOIN, create_join_response(3, "member-7"))
    beating.join()
    wait_for_beats(beating, 1)
    beat = beating.coordinator.sent(HEARTBEAT)[0]
    assert (beat.generation_id, beat.member_id) == (3, "member-7")
    assert (beat.group_id, beat.group_instance_id) == ("a", "worker-0")


def test_heartbeats_that_are_well_signal_nothing(beating: Worker) -> None:
    beating.join()
    wait_for_beats(beating, 3)
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        (ErrorCode.rebalance_in_progress, MembershipSignal.REBALANCE),
        (ErrorCode.unknown_member_id, MembershipSignal.LOST),
        (ErrorCode.illegal_generation, MembershipSignal.LOST),
        (ErrorCode.fenced_instance_id, MembershipSignal.LOST),
        (ErrorCode.group_authorization_failed, MembershipSignal.LOST),
    ],
)
def test_each_answer_becomes_its_signal(
    beating: Worker, code: ErrorCode, signal: MembershipSignal
) -> None:
    beating.coordinator.refuse(HEARTBEAT, code)
    beating.join()
    wait_for_signal(beating, signal)


def test_a_signal_is_over_with_the_generation_that_it_was_for(beating: Worker) -> None:
    beating.coordinator.refuse(HEARTBEAT, ErrorCode.rebalance_in_progress)
    beating.join()
    wait_for_signal(beating, MembershipSignal.REBALANCE)
    beating.coordinator.answer(JOIN, create_join_response(2))
    beating.join()
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


@pytest.mark.parametrize(
    "code", [ErrorCode.rebalance_in_progress, ErrorCode.unknown_member_id], ids=lambda c: c.name
)
def test_a_signal_is_over_with_the_next_join_even_into_the_same_generation(
    beating: Worker, code: ErrorCode
) -> None:
    """Test that a join ends the signal even if a static member gets back its id and generation."""
    beating.coordinator.refuse(HEARTBEAT, code)
    beating.join()
    assert beating.member.current_membership.generation == 1
    wait_until(
        lambda: beating.member.read_current_signal_or_raise() is not MembershipSignal.NOTHING,
        what="a signal",
    )
    beating.join()
    assert beating.member.current_membership.generation == 1
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_an_answer_that_comes_after_the_next_join_is_for_nobody(beating: Worker) -> None:
    asked, answered = threading.Event(), threading.Event()

    def late(given_up: Callable[[], bool]) -> dict[str, object]:
        asked.set()
        assert answered.wait(HANG_LIMIT_S)
        return {"error_code": ErrorCode.rebalance_in_progress}

    beating.coordinator.answer(HEARTBEAT, late)
    beating.join()
    assert asked.wait(HANG_LIMIT_S)
    beating.coordinator.answer(JOIN, create_join_response(2))
    beating.join()
    answered.set()
    wait_for_beats(beating, 2)
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_no_heartbeat_is_sent_before_the_first_join(beating: Worker) -> None:
    beating.member.leave_group()
    assert beating.coordinator.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        ConnectionLost("gone"),
        {"error_code": ErrorCode.not_coordinator},
        {"error_code": ErrorCode.coordinator_load_in_progress},
    ],
    ids=["lost", "moved", "loading"],
)
def test_heartbeats_find_the_coordinator_again_and_lose_nothing(
    beating: Worker, answer: ConnectionLost | dict[str, ErrorCode]
) -> None:
    beating.coordinator.answer(HEARTBEAT, answer)
    beating.join()
    wait_for_beats(beating, 2)
    assert len(beating.coordinator.dialled) == 6  # two for the join
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_leaving_ends_the_heartbeats(beating: Worker) -> None:
    beating.join()
    beating.member.leave_group()
    assert not [each for each in threading.enumerate() if each.name == "worker-0-heartbeat"]


def test_a_member_whose_thread_makes_no_turn_for_too_long_leaves_the_group(beating: Worker) -> None:
    beating.coordinator.answer(JOIN, create_join_response(3, "member-7"))
    beating.join()
    beating.clock.elapsed_s += 299
    wait_for_beats(beating, 2)
    beating.clock.elapsed_s += 2
    wait_for_signal(beating, MembershipSignal.LOST)
    wait_until(lambda: bool(beating.coordinator.sent(LEAVE)), what="a leave")
    (leave,) = beating.coordinator.sent(LEAVE)
    assert [(each.member_id, each.group_instance_id) for each in leave.members] == [
        ("member-7", "worker-0")
    ]


def test_a_member_whose_thread_makes_turns_stays(beating: Worker) -> None:
    beating.join()
    for _ in range(3):
        beating.clock.elapsed_s += 200
        beating.member.mark_progress()
        wait_for_beats(beating, 2)
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING
    assert beating.coordinator.sent(LEAVE) == []


def test_a_join_that_took_long_is_a_turn(beating: Worker) -> None:
    beating.member.mark_progress()
    beating.clock.elapsed_s += 1_000
    beating.join()
    wait_for_beats(beating, 2)
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_how_long_the_coordinator_has_been_silent_is_known_until_it_answers(
    beating: Worker,
) -> None:
    beating.join()
    wait_for_beats(beating, 1)
    assert beating.member.silent_since_s is None
    answers_again = threading.Event()

    def silent(_: object) -> dict[str, object]:
        if answers_again.is_set():
            return {}
        raise ConnectionLost("gone")

    for _ in range(10_000):
        beating.coordinator.answer(HEARTBEAT, silent)
    wait_until(lambda: beating.member.silent_since_s is not None, what="silence")
    answers_again.set()
    wait_until(lambda: beating.member.silent_since_s is None, what="an answer")


def test_since_when_a_heartbeat_waits_is_known_once_its_answer_is_overdue(beating: Worker) -> None:
    beating.join()
    wait_for_beats(beating, 1)
    lost: list[ConnectionLost] = [ConnectionLost("closed by the broker")]
    waited_s: list[int] = []

    def wait(_: object) -> dict[str, object]:
        if not lost:
            return {}
        if isinstance(lost[0], ConnectionUnanswered) and len(waited_s) < 3:
            waited_s.append(10)
            beating.clock.elapsed_s += 10
        raise lost[0]

    for _ in range(10_000):
        beating.coordinator.answer(HEARTBEAT, wait)
    wait_until(lambda: beating.member.silent_since_s is not None, what="silence")
    assert beating.member.unanswered_since_s is None, "a closed connection makes nobody wait"
    sent_at_s = beating.clock.elapsed_s
    lost[0] = ConnectionUnanswered("no answer in time")
    wait_until(lambda: len(waited_s) == 3, what="three heartbeats without an answer")
    assert beating.member.unanswered_since_s == sent_at_s, "counted from when the first was sent"
    lost.clear()
    wait_until(lambda: beating.member.unanswered_since_s is None, what="an answer")


def test_a_member_that_left_unheard_and_joins_the_same_generation_is_not_lost_again(
    beating: Worker,
) -> None:
    beating.coordinator.answer(JOIN, create_join_response(3, "member-7"))
    beating.join()
    beating.clock.elapsed_s += 301
    wait_for_signal(beating, MembershipSignal.LOST)
    beating.coordinator.answer(JOIN, create_join_response(3, "member-7"))
    beating.join()
    assert beating.member.current_membership == (3, "member-7")
    wait_for_beats(beating, 2)
    assert beating.member.read_current_signal_or_raise() is MembershipSignal.NOTHING


def test_refused_credentials_reach_the_stream_thread_and_a_lost_connection_does_not(
    beating: Worker,
) -> None:
    lost = ConnectionLost("closed by the broker")
    beating.coordinator.answer(HEARTBEAT, lost, lost, AuthenticationError("refused: user 'a'"))
    beating.join()

    with pytest.raises(AuthenticationError, match="user 'a'"):
        wait_for_signal(beating, MembershipSignal.LOST)
    assert len(beating.coordinator.sent(HEARTBEAT)) == 3
