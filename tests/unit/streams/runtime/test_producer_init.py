"""Test how a transactional producer gets its id, and that a failed one does not get it later."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.errors import AuthenticationError, OutcomeUnknown, TaskMigrated
from streams.runtime.clients import StreamsProducer

LOADING = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "loading")
FENCED = KafkaError(KafkaError._FENCED, "fenced", fatal=True)


class Client:
    """Stands in for a producer of librdkafka whose initialisation meets these errors first."""

    errors: list[KafkaError]
    calls: list[float]
    alive: weakref.WeakSet[Client]

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self.alive.add(self)
        self.is_purged = False

    def init_transactions(self, timeout_s: float) -> None:
        self.calls.append(timeout_s)
        if self.errors:
            raise KafkaException(self.errors.pop(0))

    def produce(self) -> None:
        pass

    def purge(self) -> None:
        self.is_purged = True

    def poll(self, timeout_s: float) -> int:
        return 0


def create_client_class(*errors: KafkaError) -> type[Client]:
    """Return a class of clients, of which the first calls meet these errors."""
    return type(
        "ClientWithErrors",
        (Client,),
        {"errors": list(errors), "calls": [], "alive": weakref.WeakSet()},
    )


def create_producer(client_class: Any, timeout_s: float = 1.0, **how: Any) -> StreamsProducer:
    return StreamsProducer(
        "p", {}, transactional=True, timeout_s=timeout_s, producer_class=client_class, **how
    )


def test_a_producer_that_is_wanted_in_any_case_waits_by_one_call() -> None:
    client_class = create_client_class()
    create_producer(client_class, timeout_s=30.0)
    assert client_class.calls == [30.0]


def test_a_producer_that_may_not_be_wanted_waits_by_short_calls_of_one_client() -> None:
    client_class = create_client_class(LOADING, LOADING)
    wanted: list[int] = []
    producer = create_producer(client_class, require_wanted=lambda: wanted.append(1))
    assert client_class.calls == [0.2] * 3
    assert len(wanted) == 3
    assert len(client_class.alive) == 1
    producer.discard()


def test_short_calls_end_with_the_time_out_and_their_last_error() -> None:
    client_class = create_client_class(*[LOADING] * 100)
    with pytest.raises(OutcomeUnknown, match="loading"):
        create_producer(client_class, timeout_s=1.0, require_wanted=lambda: None)
    assert len(client_class.calls) == 5


def test_no_call_is_made_for_a_producer_that_nobody_wants() -> None:
    client_class = create_client_class()

    def refuse() -> None:
        raise OutcomeUnknown("its task is gone")

    with pytest.raises(OutcomeUnknown, match="gone"):
        create_producer(client_class, require_wanted=refuse)
    assert client_class.calls == []


def test_credentials_that_brokers_refuse_end_short_calls_too() -> None:
    client_class = create_client_class(*[LOADING] * 100)

    def require_usable() -> None:
        if len(client_class.calls) == 2:
            raise AuthenticationError("the broker refuses user 'a'")

    with pytest.raises(AuthenticationError, match="user 'a'"):
        create_producer(client_class, require_wanted=lambda: None, require_usable=require_usable)
    assert len(client_class.calls) == 2


@pytest.mark.parametrize("how", [{}, {"require_wanted": lambda: None}])
@pytest.mark.parametrize(("error", "recovery"), [(LOADING, OutcomeUnknown), (FENCED, TaskMigrated)])
def test_an_error_that_is_kept_keeps_no_client_that_would_fence_the_next_owner(
    error: KafkaError, recovery: type[Exception], how: dict[str, Any]
) -> None:
    """Check that the client is destroyed, which in the background would go on to ask for an id."""
    client_class = create_client_class(*[error] * 100)
    gc.disable()
    try:
        with pytest.raises(recovery) as kept:
            create_producer(client_class, **how)
        assert len(client_class.alive) == 0
        assert kept.value
    finally:
        gc.enable()
