"""Test the marker channel: queues by destination, batches, retries, and markers given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from coordinator.errors import Code
from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.markers import (
    RETRY_MS,
    RETRY_MS_MAX,
    MarkerAnswers,
    MarkerChannel,
    MarkerDestination,
    TransactionMarker,
)
from coordinator.transactions.state import TopicPartition
from tests.unit.coordinator.fakes import FakeClock

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
ENDED = TransactionEnded(7, 1, committed=True)


class FakeDestination:
    """Stands in for a broker that gets markers: keeps requests and responds when a test says so."""

    def __init__(self) -> None:
        self.sent: list[Sequence[TransactionMarker]] = []
        self._answers: list[Callable[[MarkerAnswers], None]] = []

    def send_markers(
        self, markers: Sequence[TransactionMarker], on_answer: Callable[[MarkerAnswers], None]
    ) -> None:
        self.sent.append(markers)
        self._answers.append(on_answer)

    def answer(self, **codes: Code) -> None:
        """Answer the oldest request with NONE, except for the topics that are named."""
        markers = self.sent[len(self.sent) - len(self._answers)]
        self._answers.pop(0)(
            [[codes.get(topic, Code.NONE) for topic, _ in m.partitions] for m in markers]
        )

    def asked(self) -> list[list[tuple[str, list[TopicPartition]]]]:
        return [[(m.transactional_id, list(m.partitions)) for m in sent] for sent in self.sent]


class Cluster:
    """Represents two brokers and the partitions' leaders."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.one, self.two = FakeDestination(), FakeDestination()
        self.leaders: dict[TopicPartition, MarkerDestination] = {
            A0: self.one,
            A1: self.one,
            B0: self.two,
        }
        self.completed: list[str] = []
        self.channel = MarkerChannel(self.leaders.get, self.completed.append, self.clock)


def test_each_destination_gets_its_partitions_and_the_last_answer_completes() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0, B0, A1})
    assert cluster.one.asked() == [[("t", [A0, A1])]]
    assert cluster.two.asked() == [[("t", [B0])]]
    cluster.one.answer()
    assert cluster.channel.partitions_without_marker("t") == {B0}
    assert cluster.completed == []
    cluster.two.answer()
    assert cluster.completed == ["t"]
    assert cluster.channel.partitions_without_marker("t") is None


def test_what_comes_while_a_request_is_under_way_goes_out_together() -> None:
    cluster = Cluster()
    for name in ("t", "u", "v"):
        cluster.channel.write_markers(name, TransactionEnded(7, 1, committed=True), {A0})
    assert cluster.one.asked() == [[("t", [A0])]]
    cluster.one.answer()
    assert cluster.one.asked()[1:] == [[("u", [A0]), ("v", [A0])]]
    cluster.one.answer()
    assert cluster.completed == ["t", "u", "v"]


def test_a_transaction_without_partitions_and_one_whose_partitions_are_gone_complete_at_once() -> (
    None
):
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, set())
    cluster.channel.write_markers("u", ENDED, {("gone", 0)})
    assert cluster.completed == ["t", "u"]


@pytest.mark.parametrize(
    "code",
    [
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.REQUEST_TIMED_OUT,
        Code.KAFKA_STORAGE_ERROR,
        Code.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_partition_that_fails_is_tried_again_alone_and_nobody_waits_with_it(code: Code) -> None:
    cluster = Cluster()
    cluster.leaders[B0] = cluster.one
    cluster.channel.write_markers("t", ENDED, {A0, B0})
    cluster.one.answer(b=code)
    assert cluster.channel.partitions_without_marker("t") == {B0}
    cluster.channel.write_markers("u", ENDED, {A0})
    cluster.one.answer()
    assert cluster.completed == ["u"]
    cluster.clock.advance(RETRY_MS)
    assert cluster.one.asked()[-1] == [("t", [B0])]
    cluster.one.answer()
    assert cluster.completed == ["u", "t"]
    assert cluster.channel.counters.retried == 1


def test_each_failure_doubles_the_wait_up_to_a_limit() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    waits = []
    for _ in range(9):
        cluster.one.answer(a=Code.NOT_LEADER_OR_FOLLOWER)
        before = len(cluster.one.sent)
        waited_ms = 0
        while len(cluster.one.sent) == before:
            cluster.clock.advance(50)
            waited_ms += 50
        waits.append(waited_ms)
    assert waits == [100, 200, 400, 800, 1600, 3200, *[RETRY_MS_MAX] * 3]


def test_a_partition_that_has_moved_is_followed() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    cluster.leaders[A0] = cluster.two
    cluster.one.answer(a=Code.NOT_LEADER_OR_FOLLOWER)
    cluster.clock.advance(RETRY_MS)
    assert cluster.two.asked() == [[("t", [A0])]]


def test_a_partition_that_is_deleted_meanwhile_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    del cluster.leaders[A0]
    cluster.one.answer(a=Code.UNKNOWN_TOPIC_OR_PARTITION)
    cluster.clock.advance(RETRY_MS)
    assert cluster.completed == ["t"]


@pytest.mark.parametrize(
    ("code", "given_up"),
    [
        (Code.UNSUPPORTED_FOR_MESSAGE_FORMAT, 0),
        (Code.UNSUPPORTED_VERSION, 0),
        (Code.INVALID_PRODUCER_EPOCH, 1),
        (Code.TRANSACTION_COORDINATOR_FENCED, 1),
    ],
)
def test_a_marker_that_a_partition_will_never_take_is_dropped(code: Code, given_up: int) -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    cluster.one.answer(a=code)
    assert cluster.completed == ["t"]
    assert cluster.channel.counters.given_up == given_up


def test_the_markers_of_a_coordinator_that_has_gone_are_forgotten() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    cluster.channel.write_markers("u", ENDED, {A0})
    cluster.channel.forget_transaction("t")
    cluster.channel.forget_transaction("u")
    cluster.one.answer(a=Code.NOT_LEADER_OR_FOLLOWER)
    cluster.clock.advance(10_000)
    assert cluster.one.asked() == [[("t", [A0])]]
    assert cluster.completed == []


def test_an_answer_for_the_coordinator_before_says_nothing_to_the_next() -> None:
    cluster = Cluster()
    cluster.channel.write_markers("t", ENDED, {A0})
    cluster.channel.forget_transaction("t")
    cluster.channel.write_markers("t", TransactionEnded(7, 1, committed=True), {A0})
    cluster.one.answer()
    assert cluster.completed == []
    assert cluster.one.asked() == [[("t", [A0])], [("t", [A0])]]
    cluster.one.answer()
    assert cluster.completed == ["t"]
