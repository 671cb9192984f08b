"""Test that what is only read is asked for again, by a new client, while no broker answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from streams.common.topic_partitions import Partition
from streams.runtime.clients import Admin
from streams.runtime.clients import admin_calls as admin_module
from streams.runtime.clients.admin_calls import NoAnswer

PARTITION = Partition("t", 0)


class Clock:
    """Stands in for the module `time`: only futures that are waited for let time pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


class WaitingFuture(Future[Any]):
    """Represents an answer that never comes; waiting for it takes all of the time-out."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def result(self, timeout: float | None = None) -> Any:
        assert timeout is not None
        self._clock.now_s += timeout
        raise TimeoutError


class LateFuture(Future[Any]):
    """Represents an answer that comes 20 s after it was asked for."""

    def __init__(self, clock: Clock, result: object) -> None:
        super().__init__()
        self._clock, self._late = clock, result

    def result(self, timeout: float | None = None) -> Any:
        assert timeout is not None
        self._clock.now_s += min(timeout, 20)
        if timeout < 20:
            raise TimeoutError
        return self._late


class Client:
    """Stands in for a client of librdkafka that waits for a broker which is gone."""

    def __init__(self, create_future: Callable[[Any], Future[Any]]) -> None:
        self._create_future = create_future

    def describe_topics(self, topics: Any) -> Mapping[str, Future[Any]]:
        return {"t": self._create_future(SimpleNamespace(topic_id="id"))}

    def list_offsets(self, partitions: Any, **_: Any) -> Mapping[TopicPartition, Future[Any]]:
        return {each: self._create_future(SimpleNamespace(offset=7)) for each in partitions}


def answer(result: Any) -> Future[Any]:
    future = Future[Any]()
    future.set_result(result)
    return future


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(admin_module, "time", clock)
    return clock


@pytest.fixture
def create_admin(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Callable[[int], Admin]:
    """Provide a function that makes an admin client whose first so many clients do not answer."""

    def create(silent_count: int) -> Admin:
        clients = iter([*[lambda _: WaitingFuture(clock)] * silent_count, *[answer] * 9])
        monkeypatch.setattr(admin_module, "create_client", lambda *_: Client(next(clients)))
        return Admin({}, "broker:9092", timeout_s=30.0)

    return create


def read_ids(admin: Admin) -> Any:
    return admin.fetch_topic_ids(["t"])["t"]


def read_end(admin: Admin) -> Any:
    return admin.fetch_latest_offsets([PARTITION])[PARTITION]


@pytest.mark.parametrize(("read", "found"), [(read_ids, "id"), (read_end, 7)])
@pytest.mark.parametrize(("silent_count", "waited_s"), [(0, 0), (1, 2), (2, 6), (3, 14), (4, 44)])
def test_a_new_client_asks_after_2_4_and_8_seconds_and_the_last_one_waits_for_all_of_30(
    create_admin: Callable[[int], Admin],
    clock: Clock,
    read: Callable[[Admin], Any],
    found: object,
    silent_count: int,
    waited_s: float,
) -> None:
    admin = create_admin(silent_count)
    if silent_count < 4:
        assert read(admin) == found
    else:
        with pytest.raises(NoAnswer, match="no answer in 44 s"):
            read(admin)
    assert clock.now_s == waited_s


@pytest.mark.parametrize(("read", "found"), [(read_ids, "id"), (read_end, 7)])
def test_an_answer_that_comes_within_the_time_out_is_taken(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    read: Callable[[Admin], Any],
    found: object,
) -> None:
    client = Client(lambda result: LateFuture(clock, result))
    monkeypatch.setattr(admin_module, "create_client", lambda *_: client)
    assert read(Admin({}, "broker:9092", timeout_s=30.0)) == found


def test_a_client_s_own_time_out_is_the_last_attempt_s_if_it_is_short(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    client = Client(lambda _: WaitingFuture(clock))
    monkeypatch.setattr(admin_module, "create_client", lambda *_: client)
    with pytest.raises(NoAnswer, match="no answer in 11 s"):
        read_end(Admin({}, "broker:9092", timeout_s=5.0))
    assert clock.now_s == 2 + 4 + 5


def test_a_shorter_limit_of_the_caller_is_kept(
    create_admin: Callable[[int], Admin], clock: Clock
) -> None:
    with pytest.raises(NoAnswer):
        create_admin(9).fetch_latest_offsets([PARTITION], timeout_s=5)
    assert clock.now_s == 5
