"""Test that a missing right is named by whoever meets it on our own connection, and not retried."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import MembershipSignal
from streams.membership.group_offsets import check_groups_listed, fetch_group_offsets
from streams.membership.producer_identity import fetch_producer_identity
from tests.processes import wait_until
from tests.unit.streams.membership.fakes import (
    COMMIT,
    FETCH,
    FIND,
    HEARTBEAT,
    JOIN,
    LEAVE,
    NOTHING,
    SYNC,
    FakeCoordinator,
    Worker,
    create_coordinator_response,
    create_join_response,
    create_sync_response,
)

IN = Partition("in", 0)
GROUP_REFUSED = ErrorCode.group_authorization_failed
TOPIC_REFUSED = ErrorCode.topic_authorization_failed
READ_GROUP = "not allowed to Read group 'a': add the ACL Read on group a for this user"
READ_TOPIC = "not allowed to Read topic 'in': add the ACL Read on topic in for this user"


def refuse_to_find(code: ErrorCode) -> dict[str, object]:
    """Return a FindCoordinator response without a coordinator."""
    return {"error_code": code, "error_message": None, "node_id": -1, "host": "", "port": -1}


@pytest.mark.parametrize("api_key", [FIND, JOIN, SYNC])
def test_a_join_without_the_right_to_the_group_is_not_tried_again(
    worker: Worker, api_key: int
) -> None:
    worker.coordinator.answer(
        api_key,
        {
            FIND: refuse_to_find(GROUP_REFUSED),
            JOIN: create_join_response() | {"error_code": GROUP_REFUSED},
            SYNC: create_sync_response(NOTHING) | {"error_code": GROUP_REFUSED},
        }[api_key],
    )
    with pytest.raises(AuthorizationError, match=READ_GROUP):
        worker.join()
    assert len(worker.coordinator.sent(api_key)) == 1


@pytest.mark.parametrize(
    ("code", "message"), [(GROUP_REFUSED, READ_GROUP), (TOPIC_REFUSED, READ_TOPIC)]
)
def test_a_commit_names_the_group_or_the_topic(
    worker: Worker, code: ErrorCode, message: str
) -> None:
    worker.join()
    part = SimpleNamespace(error_code=code)
    worker.coordinator.answer(COMMIT, {"topics": [SimpleNamespace(name="in", partitions=[part])]})
    with pytest.raises(AuthorizationError, match=message):
        worker.member.try_commit_offsets([(IN, OffsetAndMetadata(1, ""))])


def test_a_fetch_of_offsets_names_the_group_or_the_topic(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(FETCH, {"topics": [], "error_code": GROUP_REFUSED})
    with pytest.raises(AuthorizationError, match=READ_GROUP):
        worker.member.fetch_committed_offsets([IN])
    part = SimpleNamespace(partition_index=0, error_code=TOPIC_REFUSED)
    worker.coordinator.answer(FETCH, {"topics": [SimpleNamespace(name="in", partitions=[part])]})
    with pytest.raises(AuthorizationError, match=READ_TOPIC):
        worker.member.fetch_committed_offsets([IN])


def test_whoever_only_looks_at_a_group_needs_describe() -> None:
    coordinator = FakeCoordinator()
    coordinator.answer(FIND, *[refuse_to_find(GROUP_REFUSED)] * 2)
    with pytest.raises(AuthorizationError, match="not allowed to Describe group 'a-cut'"):
        fetch_group_offsets(coordinator.dial, "a-cut", [IN])


def test_names_of_groups_are_looked_at_over_one_connection() -> None:
    coordinator = FakeCoordinator()
    check_groups_listed(coordinator.dial, ["a-cut", "a-cut-"])
    assert [each.key for each in coordinator.sent(FIND)] == ["a-cut", "a-cut-"]
    assert coordinator.dialled == [None]
    assert not coordinator.open
    healthy = create_coordinator_response()
    coordinator.answer(FIND, healthy, refuse_to_find(GROUP_REFUSED))
    with pytest.raises(AuthorizationError, match="not allowed to Describe group 'a-cut-'"):
        check_groups_listed(coordinator.dial, ["a-cut", "a-cut-"])


def test_a_group_whose_coordinator_is_away_is_not_known_to_be_listed() -> None:
    coordinator = FakeCoordinator()
    coordinator.answer(FIND, refuse_to_find(ErrorCode.coordinator_not_available))
    with pytest.raises(ConnectionLost, match="coordinator_not_available"):
        check_groups_listed(coordinator.dial, ["a-cut", "a-cut-"])


def test_the_transactional_id_may_be_allowed_by_a_prefix() -> None:
    coordinator = FakeCoordinator()
    coordinator.answer(FIND, refuse_to_find(ErrorCode.transactional_id_authorization_failed))
    with pytest.raises(
        AuthorizationError,
        match="not allowed to Write transactional id 'a-0': add the ACL Write on "
        "transactional id a-0 or on a prefix of it for this user",
    ):
        fetch_producer_identity(coordinator.dial, "a-0")


def test_a_member_whose_heartbeat_is_refused_joins_again_and_meets_the_error(
    new_worker: type[Worker],
) -> None:
    worker = new_worker(heartbeat_ms=1)
    worker.join()
    worker.coordinator.refuse(HEARTBEAT, GROUP_REFUSED)
    wait_until(
        lambda: worker.member.read_current_signal_or_raise() is MembershipSignal.LOST,
        what="the signal LOST",
    )
    worker.coordinator.answer(JOIN, create_join_response() | {"error_code": GROUP_REFUSED})
    with pytest.raises(AuthorizationError, match=READ_GROUP):
        worker.join()


def test_a_member_that_may_not_even_leave_only_logs_it(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(LEAVE, AuthorizationError("Read", "group", "a"))
    worker.member.leave_group()
    assert len(worker.coordinator.sent(LEAVE)) == 1
