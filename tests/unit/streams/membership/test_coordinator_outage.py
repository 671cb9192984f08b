"""Test that a coordinator that is away is waited for, and told, while other brokers answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streams.membership.broker_outage import BrokerOutage
from streams.membership.connection import ConnectionLost
from tests.unit.streams.runtime.fakes import Clock

GROUP_COORDINATOR, OTHER_COORDINATOR = ("one", 9092), ("two", 9092)
TRANSACTIONAL_ID = "app-task:in_1"
LIMIT_S = 10.0


class Cluster:
    """Stands in for a cluster whose coordinators a test takes away, one by one."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.codes: dict[str, ErrorCode] = {}
        """What FindCoordinator is answered, by the group or transactional id; else `none`."""
        self.away: set[tuple[str, int]] = set()
        self.opened: list[tuple[str, int] | None] = []
        self.outage = BrokerOutage("kafka:9092", self.clock, self._open, group_id="app")
        self.outage.coordinators.add_transactional_id(TRANSACTIONAL_ID)
        self.failing_since_s = self.clock.elapsed_s

    def _open(self, address: tuple[str, int] | None) -> Any:
        self.opened.append(address)
        if address in self.away:
            raise ConnectionLost("connection refused")
        return SimpleNamespace(send_request=self._find_coordinator, close=lambda: None)

    def _find_coordinator(self, request: Any) -> Any:
        host, port = GROUP_COORDINATOR if request.key == "app" else OTHER_COORDINATOR
        code = self.codes.get(request.key, ErrorCode.none)
        return SimpleNamespace(host=host, port=port, error_code=code)

    def is_overdue_after(self, seconds: float) -> bool:
        """Return whether what has failed since the beginning is overdue after more seconds."""
        self.clock.advance_monotonic_clock(seconds)
        return self.outage.is_overdue(self.failing_since_s, LIMIT_S)


def take_address_away(cluster: Cluster) -> None:
    cluster.away.add(OTHER_COORDINATOR)


def take_leader_away(cluster: Cluster) -> None:
    cluster.codes[TRANSACTIONAL_ID] = ErrorCode.coordinator_not_available


def take_group_away(cluster: Cluster) -> None:
    cluster.away.add(GROUP_COORDINATOR)


@pytest.mark.parametrize("take_away", [take_address_away, take_leader_away, take_group_away])
def test_no_time_out_ends_while_a_coordinator_is_away_however_long(take_away: Any) -> None:
    cluster = Cluster()
    take_away(cluster)
    assert not any(cluster.is_overdue_after(LIMIT_S + 1) for _ in range(100))
    assert not cluster.outage.is_on, "other brokers answer"
    cluster.away, cluster.codes = set(), {}
    assert not cluster.is_overdue_after(1)
    assert not cluster.is_overdue_after(LIMIT_S + 9), "clients may take ten seconds to connect"
    assert cluster.is_overdue_after(2), "what still fails has another cause"


def test_a_coordinator_that_is_away_is_one_warning_and_one_more_each_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    take_address_away(cluster)
    cluster.is_overdue_after(LIMIT_S + 1)
    for _ in range(120):
        cluster.is_overdue_after(1)
    away = (
        f"the coordinator of transactional id {TRANSACTIONAL_ID!r} does not answer: "
        "connection refused"
    )
    assert caplog.messages == [
        f"{away}. Other brokers answer. Nothing is lost, and what needs it goes on when it does",
        f"for 71 s, {away}",
        f"for 131 s, {away}",
    ]
    cluster.failing_since_s = cluster.clock.elapsed_s + 1_000
    cluster.is_overdue_after(1_000 + LIMIT_S + 1)
    assert len(caplog.messages) == 4
    assert caplog.messages[3] == caplog.messages[0], "it is another incident"


def test_coordinators_are_asked_once_a_second_and_each_broker_once() -> None:
    cluster = Cluster()
    for number in range(20):
        cluster.outage.coordinators.add_transactional_id(f"app-task:in_{number}")
    cluster.clock.advance_monotonic_clock(LIMIT_S + 1)
    assert all(cluster.is_overdue_after(0) for _ in range(5))
    assert cluster.opened.count(OTHER_COORDINATOR) == 1


def test_a_missing_right_to_ask_is_no_coordinator_that_is_away() -> None:
    cluster = Cluster()
    cluster.codes["app"] = ErrorCode.group_authorization_failed
    assert cluster.is_overdue_after(LIMIT_S + 1)
