"""Test that a lost connection to the coordinator is closed, and no other one."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from kio.schema.errors import ErrorCode

from streams.membership.connection import BrokerNotReady, ConnectionLost
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import Membership
from streams.membership.group_requests import send_heartbeat
from tests.unit.streams.membership.fakes import COORDINATOR, FIND, HEARTBEAT, FakeCoordinator
from tests.unit.streams.runtime.fakes import Clock, ThreadsOnClock

MEMBER = Membership(1, "member-1")


@pytest.fixture
def coordinator() -> FakeCoordinator:
    return FakeCoordinator()


@pytest.fixture
def shared(coordinator: FakeCoordinator) -> CoordinatorConnection:
    return CoordinatorConnection("a", coordinator.dial, ThreadsOnClock(Clock()))


def test_a_connection_is_shared_until_it_is_lost(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with shared.use_connection() as first, shared.use_connection() as same:
        assert first is same
    coordinator.answer(HEARTBEAT, ConnectionLost("no answer in time"))
    with pytest.raises(ConnectionLost), shared.use_connection() as first:
        send_heartbeat(first, "a", "worker-0", MEMBER)
    with shared.use_connection() as second:
        assert second is not first
    assert coordinator.dialled == [None, COORDINATOR] * 2
    assert coordinator.open == {second}


def test_a_lost_connection_takes_no_renewed_one_along(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with ExitStack() as heartbeat:
        heartbeat.enter_context(pytest.raises(ConnectionLost))
        old = heartbeat.enter_context(shared.use_connection())
        shared.renew_connection()
        with shared.use_connection() as renewed:
            assert renewed is not old
        send_heartbeat(old, "a", "worker-0", MEMBER)
    with shared.use_connection() as used:
        assert used is renewed
        assert send_heartbeat(used, "a", "worker-0", MEMBER) is ErrorCode.none


def test_an_error_of_another_kind_keeps_the_connection(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with pytest.raises(ValueError, match="not this"), shared.use_connection() as first:
        raise ValueError("not this")
    assert coordinator.open == {first}
    shared.close_connection()
    assert not coordinator.open


def test_the_address_is_known_while_there_is_a_connection(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    assert shared.address is None
    with shared.use_connection():
        assert shared.address == COORDINATOR
    with pytest.raises(ConnectionLost), shared.use_connection():
        raise ConnectionLost("no answer in time")
    assert shared.address is None
    for end in (shared.close_connection, shared.renew_connection):
        with shared.use_connection():
            assert shared.address == COORDINATOR
        end()
        assert shared.address is None


def test_a_coordinator_that_another_server_names_is_confirmed(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with shared.use_connection() as connection:
        shared.confirm_coordinator(connection)
    assert coordinator.dialled == [None, COORDINATOR, None]


def test_a_broker_that_was_replaced_as_coordinator_is_not_confirmed(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    moved = {"node_id": 2, "host": "other", "port": 9092, "error_message": None}
    with shared.use_connection() as connection:
        coordinator.answer(FIND, moved)
        with pytest.raises(BrokerNotReady, match="is other:9092"):
            shared.confirm_coordinator(connection)


def test_a_coordinator_s_own_word_is_not_enough_while_another_server_answers(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with shared.use_connection() as connection:
        coordinator.asked = [COORDINATOR, ("other", 9092)]
        shared.confirm_coordinator(connection)
    assert coordinator.dialled == [None, COORDINATOR, None, None]


def test_where_only_one_server_is_known_its_own_word_is_taken(
    shared: CoordinatorConnection, coordinator: FakeCoordinator
) -> None:
    with shared.use_connection() as connection:
        coordinator.asked = [COORDINATOR, COORDINATOR]
        shared.confirm_coordinator(connection)
    assert coordinator.dialled == [None, COORDINATOR, None, None]


def test_a_connection_that_another_thread_has_given_up_is_not_confirmed(
    shared: CoordinatorConnection,
) -> None:
    with shared.use_connection() as connection:
        shared.renew_connection()
        with pytest.raises(BrokerNotReady):
            shared.confirm_coordinator(connection)
