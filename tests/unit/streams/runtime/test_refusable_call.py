"""Test that a producer's call ends when brokers refuse its credentials, whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import AuthenticationError, OutcomeUnknown
from streams.runtime.clients import StreamsProducer, producer
from tests.processes import HANG_LIMIT_S

REFUSAL = "the broker refuses the credentials of user 'a'"


class WaitingClient:
    """Stands in for a producer of librdkafka whose calls wait until `answers` is set."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.answers = threading.Event()
        self.error: Exception | None = None

    def _wait(self, *_: object) -> None:
        self.called.set()
        assert self.answers.wait(HANG_LIMIT_S)
        if self.error is not None:
            raise self.error

    commit_transaction = send_offsets_to_transaction = init_transactions = flush = _wait

    def produce(self) -> None:
        pass

    def purge(self) -> None:
        pass

    def poll(self, timeout: float) -> int:
        return 0

    def list_topics(self, *, timeout: float) -> object:
        raise KafkaException(KafkaError._TRANSPORT)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingClient]:
    client = WaitingClient()
    monkeypatch.setattr(producer, "create_client", lambda *_: client)
    yield client
    client.answers.set()


@pytest.fixture
def security() -> CurrentSecurity:
    return CurrentSecurity(PLAINTEXT)


def create_producer(security: CurrentSecurity, *, transactional: bool = False) -> StreamsProducer:
    version = security.version
    return StreamsProducer(
        "p",
        {},
        transactional=transactional,
        timeout_s=HANG_LIMIT_S,
        require_usable=lambda: security.require_usable(version),
    )


CALLS: dict[str, Callable[[StreamsProducer], None]] = {
    "commit": StreamsProducer.commit_transaction,
    "send offsets": lambda made: made.send_offsets_to_transaction([], b""),
    "flush": StreamsProducer.flush,
}


def act_once_called(client: WaitingClient, act: Callable[[], None]) -> None:
    """Start a thread that calls `act` as soon as a call of the client waits."""

    def wait_and_act() -> None:
        assert client.called.wait(HANG_LIMIT_S)
        act()

    threading.Thread(target=wait_and_act, daemon=True).start()


def test_offsets_are_sent_for_no_longer_than_the_member_may_be_silent(
    client: WaitingClient, security: CurrentSecurity
) -> None:
    """The caller discards the producer then, so that nothing of the transaction is committed."""
    made = create_producer(security)
    with pytest.raises(OutcomeUnknown, match=r"no answer for 0\.5 s"):
        made.send_offsets_to_transaction([], b"", 0.5)


@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_ends_a_call_that_waits(
    client: WaitingClient, security: CurrentSecurity, name: str
) -> None:
    made = create_producer(security)
    act_once_called(client, lambda: security.note_refusal(REFUSAL))
    with pytest.raises(AuthenticationError, match="user 'a'"):
        CALLS[name](made)


def test_a_refusal_ends_the_creation_of_a_transactional_producer(
    client: WaitingClient, security: CurrentSecurity
) -> None:
    act_once_called(client, lambda: security.note_refusal(REFUSAL))
    with pytest.raises(AuthenticationError, match="user 'a'"):
        create_producer(security, transactional=True)


def test_new_credentials_end_a_call_whose_own_were_refused(
    client: WaitingClient, security: CurrentSecurity
) -> None:
    made = create_producer(security)
    act_once_called(client, lambda: security.replace_security(PLAINTEXT, is_old_refused=True))
    with pytest.raises(OutcomeUnknown, match="replaced"):
        made.commit_transaction()
    client.answers.set()
    create_producer(security).commit_transaction()


def test_new_credentials_let_a_call_go_on_whose_own_are_accepted(
    client: WaitingClient, security: CurrentSecurity
) -> None:
    version_checks: list[int] = []

    def require_usable() -> None:
        security.require_usable(0)
        version_checks.append(security.version)
        if security.version:
            client.answers.set()
        security.replace_security(PLAINTEXT)

    made = StreamsProducer(
        "p", {}, transactional=False, timeout_s=HANG_LIMIT_S, require_usable=require_usable
    )
    made.commit_transaction()
    assert version_checks[:2] == [0, 1]


def test_a_call_returns_what_the_client_raises(
    client: WaitingClient, security: CurrentSecurity
) -> None:
    made = create_producer(security)
    client.answers.set()
    client.error = ValueError("a call's own error")
    with pytest.raises(ValueError, match="own error"):
        made.commit_transaction()


@pytest.mark.parametrize("name", ["commit", "send offsets"])
def test_a_call_that_does_not_keep_its_time_out_ends_with_an_unknown_outcome(
    client: WaitingClient, name: str
) -> None:
    made = StreamsProducer("p", {}, transactional=False, timeout_s=0.01)
    with pytest.raises(OutcomeUnknown, match="past its time-out"):
        CALLS[name](made)
    client.answers.set()
    CALLS[name](made)
