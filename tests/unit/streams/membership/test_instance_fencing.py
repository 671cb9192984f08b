"""Test when a worker that is fenced takes another identity, and when it joins again as before."""

from __future__ import annotations

import threading

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import StreamsError, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import MembershipSignal
from streams.membership.instance_fencing import InstanceFencing, WorkerIds
from tests.processes import wait_until
from tests.unit.streams.membership.fakes import (
    HEARTBEAT,
    JOIN,
    NOTHING,
    Worker,
    create_join_response,
)

WORKER = WorkerIds("worker", "directory")
FIRST, SECOND = WorkerIds("one", "directory-1"), WorkerIds("two", "directory-2")
THREAD, OTHER_THREAD = "app-one-0", "app-one-1"


class Renewal:
    """Stands in for the state directory, which gives the worker its second ids."""

    def __init__(self) -> None:
        self.count = 0
        self.failure: StreamsError | None = None

    def __call__(self) -> WorkerIds:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        return SECOND


def create_fencing() -> tuple[InstanceFencing, Renewal]:
    renewal = Renewal()
    return InstanceFencing(FIRST, renewal, threading.Lock()), renewal


def test_a_worker_fenced_once_keeps_its_identity_whoever_hears_of_it() -> None:
    fencing, renewal = create_fencing()
    assert not fencing.count_fencing_and_renew_identity(THREAD, "member-1")
    assert not fencing.count_fencing_and_renew_identity(THREAD, "member-1")
    assert not fencing.count_fencing_and_renew_identity(OTHER_THREAD, "member-2")
    assert renewal.count == 0
    assert not fencing.is_replaced_or_raise_failure("one")


def test_a_worker_fenced_twice_takes_another_identity_for_all_of_its_threads() -> None:
    fencing, renewal = create_fencing()
    for thread in (THREAD, OTHER_THREAD):
        assert not fencing.count_fencing_and_renew_identity(thread, f"{thread}: member-1")
    for thread in (THREAD, OTHER_THREAD):
        assert fencing.count_fencing_and_renew_identity(thread, f"{thread}: member-2")
        assert fencing.count_fencing_and_renew_identity(thread, f"{thread}: member-3")
    assert renewal.count == 1
    assert fencing.ids == SECOND
    assert fencing.is_replaced_or_raise_failure("one")
    assert not fencing.is_replaced_or_raise_failure("two")


def test_an_identity_that_cannot_be_replaced_ends_each_thread() -> None:
    fencing, renewal = create_fencing()
    renewal.failure = StreamsError("the directory '/state' is read-only")
    fencing.count_fencing_and_renew_identity(THREAD, "member-1")
    assert fencing.count_fencing_and_renew_identity(THREAD, "member-2")
    for _ in range(2):
        with pytest.raises(StreamsError, match="'/state' is read-only"):
            fencing.is_replaced_or_raise_failure("one")
    assert renewal.count == 1


def test_a_join_that_may_have_fenced_its_own_member_does_not_count() -> None:
    fencing, renewal = create_fencing()
    fencing.note_lost_join(THREAD)
    for member_id in ("member-1", "member-2"):
        assert not fencing.count_fencing_and_renew_identity(THREAD, member_id)
    assert renewal.count == 0
    assert fencing.count_fencing_and_renew_identity(THREAD, "member-3")


def fence(worker: Worker, next_member_id: str) -> None:
    """Answer the next join as the coordinator does once another has the member's instance id."""
    fenced = {**create_join_response(), "error_code": ErrorCode.fenced_instance_id}
    worker.coordinator.answer(JOIN, fenced, create_join_response(member_id=next_member_id))


def test_a_member_joins_again_after_it_was_fenced_and_no_more_after_the_second_time() -> None:
    renewal = Renewal()
    worker = Worker(fencing=InstanceFencing(WORKER, renewal, threading.Lock()))
    assert worker.join() == NOTHING
    fence(worker, "member-2")
    assert worker.join() == NOTHING
    sent_count = len(worker.coordinator.sent(JOIN))
    fence(worker, "member-3")
    with pytest.raises(TaskMigrated, match="joins again and again"):
        worker.join()
    assert len(worker.coordinator.sent(JOIN)) == sent_count + 1
    assert renewal.count == 1


def test_a_member_whose_join_lost_its_answer_is_not_taken_for_a_copy() -> None:
    renewal = Renewal()
    worker = Worker(fencing=InstanceFencing(WORKER, renewal, threading.Lock()))
    worker.coordinator.answer(JOIN, ConnectionLost("the answer was lost"))
    assert worker.join() == NOTHING
    for member_id in ("member-2", "member-3"):
        fence(worker, member_id)
        assert worker.join() == NOTHING
    assert renewal.count == 0


def test_heartbeats_that_are_fenced_count_as_well() -> None:
    renewal = Renewal()
    worker = Worker(heartbeat_ms=1, fencing=InstanceFencing(WORKER, renewal, threading.Lock()))
    for number in (2, 3):
        worker.coordinator.answer(JOIN, create_join_response(member_id=f"member-{number}"))
        worker.join()
        worker.coordinator.refuse(HEARTBEAT, ErrorCode.fenced_instance_id)
        wait_until(
            lambda: worker.member.read_current_signal_or_raise() is MembershipSignal.LOST,
            what="the lost membership",
        )
    wait_until(lambda: renewal.count == 1, what="another identity")
    worker.member.leave_group()
