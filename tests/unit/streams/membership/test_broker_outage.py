"""Test how an outage is told, and that no time-out runs in it."""

from __future__ import annotations

from typing import Any

import pytest

from streams.membership.broker_outage import BrokerOutage
from streams.membership.connection import ConnectionLost
from tests.unit.streams.runtime.fakes import Clock


class Connection:
    def close(self) -> None:
        pass


class Brokers:
    """Stands in for brokers that a test takes away, and counts the attempts to connect."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.is_away = False
        self.is_stopping = False
        self.attempts = 0
        self.outage = BrokerOutage("kafka:9092", self.clock, self._open, lambda: self.is_stopping)

    def _open(self, address: tuple[str, int] | None) -> Any:
        self.attempts += 1
        if self.is_away:
            raise ConnectionLost("connection refused")
        return Connection()

    def miss(self, address: tuple[str, int] | None = None) -> None:
        with pytest.raises(ConnectionLost):
            self.outage.open_connection(address)

    def wait(self, seconds: float) -> None:
        self.clock.advance_monotonic_clock(seconds)


def test_an_outage_is_one_warning_one_more_each_minute_and_one_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = Brokers()
    brokers.is_away = True
    for _ in range(131):
        brokers.miss()
        brokers.wait(1)
    brokers.is_away = False
    for _ in range(2):
        brokers.outage.open_connection(None).close()
    begin = "no broker answers at kafka:9092 (connection refused): nothing is lost, and "
    assert caplog.messages == [
        f"{begin}processing goes on when one does",
        "still no broker answers at kafka:9092, for 60 s: connection refused",
        "still no broker answers at kafka:9092, for 120 s: connection refused",
        "a broker answers again at kafka:9092, 131 s after it was noticed that none did",
    ]
    brokers.is_away = True
    brokers.miss()
    assert len(caplog.messages) == 5


def test_one_broker_that_is_away_and_one_that_a_stopping_worker_misses_are_no_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = Brokers()
    brokers.is_away = True
    brokers.miss(("coordinator", 9092))
    assert not brokers.outage.is_on
    brokers.is_stopping = True
    brokers.miss()
    assert not brokers.outage.is_on
    assert caplog.messages == []


def test_a_time_out_begins_anew_with_the_end_of_an_outage() -> None:
    brokers = Brokers()
    began_s = brokers.clock.elapsed_s
    brokers.wait(5)
    assert not brokers.outage.is_overdue(began_s, 10)
    brokers.is_away = True
    brokers.miss()
    brokers.wait(600)
    assert not brokers.outage.is_overdue(began_s, 10)
    brokers.is_away = False
    assert brokers.outage.try_reach_any_broker()
    brokers.wait(19)  # ten of which librdkafka's clients may take to connect again
    assert not brokers.outage.is_overdue(began_s, 10)
    brokers.wait(2)
    assert brokers.outage.is_overdue(began_s, 10)


def test_an_outage_that_nobody_knows_of_is_found_before_a_time_out_ends_anything() -> None:
    brokers = Brokers()
    began_s = brokers.clock.elapsed_s
    brokers.wait(11)
    brokers.is_away = True
    assert not brokers.outage.is_overdue(began_s, 10)
    assert brokers.outage.is_on


def test_several_threads_that_wait_ask_once_a_second() -> None:
    brokers = Brokers()
    for _ in range(20):
        for _ in range(4):
            brokers.outage.probe_if_due()
        brokers.wait(0.25)
    assert brokers.attempts == 5
