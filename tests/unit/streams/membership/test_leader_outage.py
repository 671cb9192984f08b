"""Test that a partition whose leader is away is waited for and told, while brokers answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streams.common.topic_partitions import Partition
from streams.errors import AuthenticationError
from streams.membership.broker_outage import BrokerOutage
from streams.membership.connection import ConnectionLost
from streams.membership.leader_outage import AwayPartition, describe_away
from tests.unit.streams.runtime.fakes import Clock

ONE, TWO = ("one", 9092), ("two", 9092)
ADDRESSES = {1: ONE, 2: TWO}
LIMIT_S = 60.0
NO_LEADER = "no leader answers for in[1] (its replicas are on broker 2)"
REST = "Other brokers answer. Nothing is lost, and what needs it goes on when it is back"


class Stop:
    """Stands in for the event that ends a watch: each wait moves the clock, until the deadline."""

    def __init__(self, clock: Clock, for_s: float, meanwhile: Callable[[], object]) -> None:
        self._clock = clock
        self._until_s = clock.elapsed_s + for_s
        self._meanwhile = meanwhile

    def wait(self, timeout: float) -> bool:
        self._meanwhile()
        self._clock.advance_monotonic_clock(timeout)
        return self._clock.elapsed_s > self._until_s


class Cluster:
    """Stands in for two brokers, of which broker 2 leads in[1], and which a test takes away."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.leaderless: set[int] = set()
        self.topic_code = ErrorCode.none
        self.away: set[tuple[str, int] | None] = set()
        self.connect_s = 0.0
        """How long it takes until an attempt to connect has failed."""
        self.is_refused = False
        self.opened: list[tuple[str, int] | None] = []
        self.requests: list[Any] = []
        self.outage = BrokerOutage("one:9092", self.clock, self._open, topics=["in"])
        self.failing_since_s = self.clock.elapsed_s

    def _open(self, address: tuple[str, int] | None) -> Any:
        self.opened.append(address)
        if self.is_refused:
            raise AuthenticationError("refused")
        if address in self.away:
            self.clock.advance_monotonic_clock(self.connect_s)
            raise ConnectionLost(f"{address[0] if address else 'any'}: connection refused")
        return SimpleNamespace(
            send_request=self._list_topic,
            negotiate_version=lambda api_key, version_max: version_max,
            close=lambda: None,
        )

    def _list_topic(self, request: Any) -> Any:
        self.requests.append(request)
        if None in self.away:
            raise ConnectionLost("closed")
        partitions = [
            SimpleNamespace(
                partition_index=number,
                error_code=(
                    ErrorCode.leader_not_available if number in self.leaderless else ErrorCode.none
                ),
                leader_id=-1 if number in self.leaderless else number + 1,
                replica_nodes=(number + 1,),
            )
            for number in range(2)
        ]
        brokers = [
            SimpleNamespace(node_id=number, host=host, port=port)
            for number, (host, port) in ADDRESSES.items()
        ]
        topic = SimpleNamespace(name="in", error_code=self.topic_code, partitions=partitions)
        return SimpleNamespace(brokers=brokers, topics=[topic])

    def is_overdue_after(self, seconds: float) -> bool:
        """Return whether what has failed since the beginning is overdue after more seconds."""
        self.clock.advance_monotonic_clock(seconds)
        return self.outage.is_overdue(self.failing_since_s, LIMIT_S)

    def watch(self, for_s: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        stop = Stop(self.clock, for_s, meanwhile)
        self.outage.leaders.watch_until_stopped(stop)  # type: ignore[arg-type]


def take_leader_away(cluster: Cluster) -> None:
    cluster.leaderless.add(1)


def take_address_away(cluster: Cluster) -> None:
    cluster.away.add(TWO)


@pytest.mark.parametrize("take_away", [take_leader_away, take_address_away])
def test_no_time_out_ends_while_the_leader_of_a_partition_is_away_however_long(
    take_away: Any,
) -> None:
    cluster = Cluster()
    take_away(cluster)
    assert not any(cluster.is_overdue_after(LIMIT_S + 1) for _ in range(100))
    assert not cluster.outage.is_on, "other brokers answer"
    cluster.leaderless, cluster.away = set(), set()
    assert not cluster.is_overdue_after(1)
    assert not cluster.is_overdue_after(LIMIT_S + 9), "clients may take ten seconds to connect"
    assert cluster.is_overdue_after(2), "what still fails has another cause"


def test_a_task_that_fails_while_its_leaders_answer_is_overdue() -> None:
    assert Cluster().is_overdue_after(LIMIT_S + 1)


def test_a_leader_that_is_away_is_told_once_then_each_minute_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A watch tells it where nothing fails, as with an input."""
    cluster = Cluster()
    cluster.watch(20)
    assert caplog.messages == []
    take_leader_away(cluster)
    cluster.watch(12)
    assert caplog.messages == [f"{NO_LEADER}. {REST}"]
    assert cluster.outage.describe_any_outage() == f"{NO_LEADER}, for 8 s"
    cluster.watch(120)
    assert [each[:40] for each in caplog.messages[1:]] == [f"still {NO_LEADER}"[:40]] * 2
    cluster.leaderless.clear()
    cluster.watch(12)
    assert caplog.messages[3:] == ["all partitions have leaders that answer again, after 134 s"]
    assert cluster.outage.describe_any_outage() == ""


def test_an_election_of_some_seconds_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    take_leader_away(cluster)
    cluster.watch(7)
    cluster.leaderless.clear()
    cluster.watch(20)
    assert caplog.messages == []
    assert cluster.outage.describe_any_outage() == ""


def test_a_leader_that_was_silent_is_tried_again_by_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    take_address_away(cluster)
    cluster.watch(60)
    assert caplog.messages == [], "nobody connects to leaders while nothing fails"
    assert not cluster.is_overdue_after(LIMIT_S)
    reason = "broker 2 leads it: two: connection refused"
    assert caplog.messages == [f"no leader answers for in[1] ({reason}). {REST}"]
    cluster.away.clear()
    cluster.watch(12)
    assert "all partitions have leaders that answer again" in caplog.messages[-1]
    assert cluster.opened.count(ONE) == 1


def test_a_leader_is_tried_also_just_after_the_watch_has_looked() -> None:
    """Looks connect to nobody, so that they do not tell of a leader that listens no more."""
    cluster = Cluster()
    take_address_away(cluster)
    answers: list[bool] = []
    cluster.clock.advance_monotonic_clock(0.5)  # so the limit is over at a look
    cluster.watch(
        66, lambda: answers.append(cluster.outage.is_overdue(cluster.failing_since_s, LIMIT_S))
    )
    assert not any(answers)


def test_attempts_to_connect_that_take_long_delay_no_look(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.connect_s = 10.0
    take_address_away(cluster)
    assert not cluster.is_overdue_after(LIMIT_S + 1)
    since_s = cluster.clock.elapsed_s

    def let_brokers_come_and_go() -> None:
        elapsed_s = cluster.clock.elapsed_s - since_s
        cluster.away = {TWO} if elapsed_s < 40 else {None} if 80 <= elapsed_s < 120 else set()
        cluster.leaderless = {1} if elapsed_s >= 120 else set()

    cluster.watch(150, let_brokers_come_and_go)
    told = [each for each in caplog.messages if "broker answers" not in each]
    assert len(told) == 3, "silent, back, and without a leader after an outage of all brokers"
    assert "all partitions have leaders that answer again" in told[1]


def test_a_caller_waits_for_no_leader_that_the_watch_knows_to_be_silent() -> None:
    cluster = Cluster()
    cluster.connect_s = 10.0
    take_address_away(cluster)
    assert not cluster.is_overdue_after(LIMIT_S + 1)

    def ask_as_a_thread() -> None:
        before = len(cluster.opened)
        assert not cluster.outage.leaders.probe_leaders(cluster.failing_since_s)
        assert len(cluster.opened) == before

    cluster.watch(60, ask_as_a_thread)


def test_an_election_lets_no_time_out_begin_anew() -> None:
    cluster = Cluster()
    take_leader_away(cluster)
    cluster.watch(6)
    cluster.leaderless.clear()
    cluster.watch(10)
    assert cluster.is_overdue_after(LIMIT_S)


def test_looks_go_over_one_connection_and_create_no_topics() -> None:
    cluster = Cluster()
    cluster.watch(60)
    assert cluster.opened == [None]
    assert len(cluster.requests) == 12
    assert not any(each.allow_auto_topic_creation for each in cluster.requests)
    cluster.away.add(None)
    cluster.watch(20)
    cluster.away.clear()
    cluster.watch(10)
    assert len(cluster.requests) == 14, "it connects again"


def test_brokers_that_refuse_the_security_do_not_end_the_watch() -> None:
    cluster = Cluster()
    cluster.is_refused = True
    cluster.watch(20)
    cluster.is_refused = False
    cluster.watch(10)
    assert cluster.requests


def test_a_topic_that_there_is_not_is_no_leader_that_is_away() -> None:
    cluster = Cluster()
    cluster.topic_code = ErrorCode.unknown_topic_or_partition
    assert cluster.is_overdue_after(LIMIT_S + 1)


def test_many_partitions_are_named_in_part() -> None:
    away = tuple(AwayPartition(Partition("in", number), "broker 2") for number in range(9))
    assert describe_away(away) == (
        "no leader answers for in[0] (broker 2); in[1] (broker 2); in[2] (broker 2); "
        "and 6 more partitions"
    )
