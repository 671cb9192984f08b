"""Test how a member learns from the coordinator whether it still belongs to the group.

The result is yes, no, or unknown for now.
"""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import GenerationOver, StreamsError
from streams.membership.connection import ConnectionLost
from tests.unit.streams.membership.fakes import (
    FIND,
    HEARTBEAT,
    JOIN,
    NOTHING,
    SYNC,
    Worker,
    create_join_response,
    create_sync_response,
)

UNKNOWN = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)
GONE = (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id)


def refuse_sync(worker: Worker, code: ErrorCode) -> None:
    worker.coordinator.answer(SYNC, {**create_sync_response(NOTHING), "error_code": code})


def test_a_stable_group_confirms_its_member_by_its_assignment(worker: Worker) -> None:
    worker.coordinator.answer(JOIN, create_join_response(3, "member-7"))
    worker.join()
    assert worker.member.is_membership_confirmed()
    asked = worker.coordinator.sent(SYNC)[-1]
    assert (asked.generation_id, asked.member_id) == (3, "member-7")
    assert (asked.group_id, asked.group_instance_id) == ("a", "worker-0")
    assert asked.assignments == ()
    assert worker.coordinator.sent(HEARTBEAT) == []


@pytest.mark.parametrize("code", GONE)
def test_a_group_that_does_not_know_the_member_denies_it(worker: Worker, code: ErrorCode) -> None:
    worker.join()
    refuse_sync(worker, code)
    assert not worker.member.is_membership_confirmed()


def test_a_group_that_has_left_the_generation_says_so(worker: Worker) -> None:
    worker.join()
    refuse_sync(worker, ErrorCode.illegal_generation)
    with pytest.raises(GenerationOver, match="left generation 1"):
        worker.member.is_membership_confirmed()


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_coordinator_that_can_not_tell_neither_confirms_nor_denies(
    worker: Worker, code: ErrorCode
) -> None:
    worker.join()
    refuse_sync(worker, code)
    with pytest.raises(ConnectionLost, match=code.name):
        worker.member.is_membership_confirmed()
    # The coordinator is then looked up again.
    found = len(worker.coordinator.sent(FIND))
    assert worker.member.is_membership_confirmed()
    assert len(worker.coordinator.sent(FIND)) == found + 1


def test_a_member_stays_one_while_its_group_rebalances(worker: Worker) -> None:
    worker.join()
    refuse_sync(worker, ErrorCode.rebalance_in_progress)
    worker.coordinator.refuse(HEARTBEAT, ErrorCode.rebalance_in_progress)
    assert worker.member.is_membership_confirmed()


def test_a_rebalance_that_no_heartbeat_repeats_is_a_group_being_loaded(worker: Worker) -> None:
    """Test that REBALANCE_IN_PROGRESS which no heartbeat confirms counts as a group being loaded.

    Brokers before 4.0 answer SyncGroup so while they load the group, and any heartbeat with NONE.
    """
    worker.join()
    refuse_sync(worker, ErrorCode.rebalance_in_progress)
    with pytest.raises(ConnectionLost, match="is being loaded"):
        worker.member.is_membership_confirmed()


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_coordinator_that_moves_during_a_rebalance_neither_confirms_nor_denies(
    worker: Worker, code: ErrorCode
) -> None:
    worker.join()
    refuse_sync(worker, ErrorCode.rebalance_in_progress)
    worker.coordinator.refuse(HEARTBEAT, code)
    with pytest.raises(ConnectionLost, match=code.name):
        worker.member.is_membership_confirmed()


@pytest.mark.parametrize("code", GONE)
def test_a_member_that_is_replaced_during_a_rebalance_is_denied(
    worker: Worker, code: ErrorCode
) -> None:
    worker.join()
    refuse_sync(worker, ErrorCode.rebalance_in_progress)
    worker.coordinator.refuse(HEARTBEAT, code)
    assert not worker.member.is_membership_confirmed()


def test_any_other_refusal_is_told_with_its_name(worker: Worker) -> None:
    worker.join()
    refuse_sync(worker, ErrorCode.inconsistent_group_protocol)
    with pytest.raises(StreamsError, match=r"'worker-0': inconsistent_group_protocol"):
        worker.member.is_membership_confirmed()
