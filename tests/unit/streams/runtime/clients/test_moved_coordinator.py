"""Test that a producer which waits for a group's coordinator is given up once that has moved."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from streams.errors import CoordinatorMoved
from streams.runtime.clients import StreamsProducer
from streams.runtime.clients.moved_coordinator import MovedCoordinator, is_listening
from tests.processes import HANG_LIMIT_S

FIRST, SECOND = ("one", 9092), ("two", 9092)
CHECKS = 10
"""The checks of two seconds."""


class Coordinator:
    """Holds where the coordinator is, as the worker's own connection knows it."""

    def __init__(self) -> None:
        self.address: tuple[str, int] | None = FIRST

    def get_address(self) -> tuple[str, int] | None:
        return self.address


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def moved(coordinator: Coordinator) -> MovedCoordinator:
    return MovedCoordinator(coordinator.get_address, is_listening=lambda _: True)


def call_for(moved: MovedCoordinator, checks: int) -> None:
    """Make a call that is checked so many times."""
    check = moved.wrap_check_to_raise_if_moved(lambda: None)
    for _ in range(checks):
        check()


def test_a_call_ends_when_the_coordinator_has_answered_elsewhere_for_two_seconds(
    moved: MovedCoordinator, coordinator: Coordinator
) -> None:
    coordinator.address = SECOND
    call_for(moved, CHECKS - 1)
    with pytest.raises(CoordinatorMoved, match="has moved to two:9092"):
        call_for(moved, CHECKS)


def test_a_call_ends_at_once_if_nothing_listens_where_the_coordinator_was(
    coordinator: Coordinator,
) -> None:
    asked: list[tuple[str, int]] = []

    def is_listening(address: tuple[str, int]) -> bool:
        asked.append(address)
        return False

    moved = MovedCoordinator(coordinator.get_address, is_listening)
    call_for(moved, CHECKS)
    assert not asked
    coordinator.address = SECOND
    with pytest.raises(CoordinatorMoved, match="has moved to two:9092"):
        call_for(moved, 1)
    assert asked == [FIRST]


def test_a_port_that_nothing_listens_at_is_told_from_one_that_takes_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert is_listening(address)
    assert not is_listening(address)


def test_a_call_to_a_slow_coordinator_goes_on(
    moved: MovedCoordinator, coordinator: Coordinator
) -> None:
    call_for(moved, 10 * CHECKS)
    coordinator.address = SECOND
    moved.note_reached()  # the call has returned all the same
    call_for(moved, 10 * CHECKS)


def test_a_call_goes_on_while_it_is_not_known_where_the_coordinator_is(
    moved: MovedCoordinator, coordinator: Coordinator
) -> None:
    check = moved.wrap_check_to_raise_if_moved(lambda: None)
    for address in [None] * 3 * CHECKS + [SECOND] * (CHECKS - 1) + [None, FIRST] * CHECKS:
        coordinator.address = address
        check()


def test_a_producer_that_never_reached_a_coordinator_is_waited_for(
    coordinator: Coordinator,
) -> None:
    coordinator.address = None
    moved = MovedCoordinator(coordinator.get_address, is_listening=lambda _: False)
    coordinator.address = SECOND
    call_for(moved, 3 * CHECKS)


def test_what_else_ends_a_call_is_raised_first(moved: MovedCoordinator) -> None:
    def refuse() -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        moved.wrap_check_to_raise_if_moved(refuse)()


class WaitingClient:
    """Stands in for a producer of librdkafka that does not find the coordinator any more."""

    released = threading.Event()

    def __init__(self, settings: object, logger: object) -> None:
        pass

    def produce(self) -> None:
        pass

    def send_offsets_to_transaction(self, *_: object) -> None:
        assert self.released.wait(HANG_LIMIT_S)


@pytest.fixture
def producer(coordinator: Coordinator) -> Iterator[StreamsProducer]:
    WaitingClient.released.clear()
    yield StreamsProducer(
        "p",
        {},
        transactional=False,
        timeout_s=HANG_LIMIT_S,
        producer_class=WaitingClient,
        get_coordinator_address=coordinator.get_address,
    )
    WaitingClient.released.set()


def test_a_producer_gives_up_sending_offsets_long_before_its_time_out(
    producer: StreamsProducer, coordinator: Coordinator
) -> None:
    coordinator.address = SECOND
    with pytest.raises(CoordinatorMoved, match="the producer does not ask for it again"):
        producer.send_offsets_to_transaction([], b"")
