"""Test that a transaction coordinator that refuses is told, and one that is away is waited for."""

from __future__ import annotations

import pytest

from streams.errors import AuthenticationError, OutcomeUnknown
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.membership.producer_identity import check_transaction_coordinator
from tests.unit.streams.membership.fakes import COORDINATOR, FIND, FakeCoordinator


def check_coordinator(answer: Exception | None) -> FakeCoordinator:
    """Check the coordinator, which answers a connection so; return it with what it was asked."""
    coordinator = FakeCoordinator()

    def open_connection(address: tuple[str, int] | None) -> BrokerConnection:
        if address == COORDINATOR and answer is not None:
            raise answer
        return coordinator.dial(address)

    check_transaction_coordinator(open_connection, "a-0")
    return coordinator


def test_a_coordinator_that_refuses_is_told() -> None:
    with pytest.raises(AuthenticationError, match="not valid today"):
        check_coordinator(AuthenticationError("the certificate is not valid today"))


def test_a_refusal_that_may_pass_leaves_nobody_waiting_in_a_producer() -> None:
    lost = ConnectionLost("the certificate is not valid today")
    lost.__cause__ = AuthenticationError("the certificate is not valid today")
    with pytest.raises(OutcomeUnknown, match="'a-0': the certificate is not valid today"):
        check_coordinator(lost)


def test_a_coordinator_that_lets_in_or_is_away_is_left_to_the_producer() -> None:
    for answer in (None, ConnectionLost("connection refused")):
        coordinator = check_coordinator(answer)
        [request] = coordinator.sent(FIND)
        assert (request.key, request.key_type) == ("a-0", 1)
        assert not coordinator.open
