"""Test in which order bootstrap servers are asked."""

from __future__ import annotations

import pytest

from streams.errors import AuthenticationError
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.membership.server_rotation import ServerRotation
from tests.unit.streams.membership.fakes import FakeCoordinator

A, B, C = ("a", 1), ("b", 2), ("c", 3)


class Servers:
    """Stands in for servers, of which some are silent, and notes which are tried."""

    def __init__(self) -> None:
        self.silent: dict[tuple[str, int], Exception] = {}
        self.tried: list[tuple[str, int]] = []
        self.rotation = ServerRotation("a:1,b:2,c:3")

    def connect(self) -> list[tuple[str, int]]:
        """Connect to the next server, and return those that were tried for it."""
        self.tried.clear()
        self.rotation.connect_to_next(self._open)
        return list(self.tried)

    def _open(self, address: tuple[str, int]) -> BrokerConnection:
        self.tried.append(address)
        if address in self.silent:
            raise self.silent[address]
        return FakeCoordinator().dial(address)


@pytest.fixture
def servers() -> Servers:
    return Servers()


def test_servers_that_answer_are_asked_in_turn(servers: Servers) -> None:
    assert [servers.connect() for _ in range(4)] == [[A], [B], [C], [A]]


@pytest.mark.parametrize("error", [ConnectionLost("no answer"), AuthenticationError("refused")])
def test_a_server_that_lets_nobody_in_is_asked_last_until_it_does(
    servers: Servers, error: Exception
) -> None:
    servers.silent = {A: error}
    assert [servers.connect() for _ in range(3)] == [[A, B], [C], [B]]
    servers.silent = {B: error, C: error}
    assert [servers.connect() for _ in range(3)] == [[C, B, A], [A], [A]]


def test_the_reason_is_given_if_none_answers(servers: Servers) -> None:
    servers.silent = dict.fromkeys((A, B, C), ConnectionLost("no answer"))
    with pytest.raises(ConnectionLost, match="no answer"):
        servers.connect()
    assert servers.tried == [A, B, C]
