"""Test that what can't be aborted of departed threads is left to time out, and raises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from streams.membership.connection import ConnectionLost
from streams.membership.departed_producers import abort_departed_transactions
from streams.membership.transactions import list_brokers


class LostConnection:
    """Loses each request."""

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return version_max

    def send_request(self, request: Any) -> Any:
        raise ConnectionLost("cut off")

    def close(self) -> None:
        pass


class UnreadyBroker(LostConnection):
    """Lists no brokers, as a broker of KRaft that is starting or that its controller has fenced."""

    def send_request(self, request: Any) -> Any:
        assert type(request).__name__ == "MetadataRequest"
        return SimpleNamespace(brokers=[], topics=[])


def test_a_broker_that_lists_no_brokers_is_not_taken_for_a_cluster_without_transactions() -> None:
    with pytest.raises(ConnectionLost, match="lists no brokers"):
        list_brokers(lambda address: UnreadyBroker())  # type: ignore[arg-type,return-value]


def refuse_connection(address: tuple[str, int] | None) -> Any:
    raise ConnectionLost("refused")


@pytest.mark.parametrize(
    "open_connection",
    [lambda address: LostConnection(), lambda address: UnreadyBroker(), refuse_connection],
)
def test_a_connection_that_is_lost_leaves_transactions_to_time_out(
    open_connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert abort_departed_transactions(open_connection, "app", ()) == []
    assert "open transactions of app are left to time out" in caplog.text


class TransactionCluster:
    """Stands in for a cluster of one broker, which coordinates these open transactions.

    It answers InitProducerId by the error code of the transaction.
    """

    def __init__(self, transactions: Mapping[str, ErrorCode]) -> None:
        self._transactions = transactions
        self.aborted: list[str] = []

    def open_connection(self, address: tuple[str, int] | None) -> Any:
        return self

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return version_max

    def close(self) -> None:
        pass

    def send_request(self, request: Any) -> Any:
        """Return only those fields of a response that are read."""
        none = ErrorCode.none
        match type(request).__name__:
            case "MetadataRequest":
                return SimpleNamespace(brokers=[SimpleNamespace(host="broker", port=9092)])
            case "ListTransactionsRequest":
                listed = [SimpleNamespace(transactional_id=each) for each in self._transactions]
                return SimpleNamespace(error_code=none, transaction_states=listed)
            case "FindCoordinatorRequest":
                return SimpleNamespace(error_code=none, host="broker", port=9092)
            case _:
                self.aborted.append(request.transactional_id)
                return SimpleNamespace(error_code=self._transactions[request.transactional_id])


DEPARTED = [f"app-{UUID(int=number)}-0" for number in range(3)]


def test_a_transaction_that_cannot_be_aborted_leaves_no_other_to_time_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    refused, *others = DEPARTED
    denied = ErrorCode.transactional_id_authorization_failed
    cluster = TransactionCluster({refused: denied} | dict.fromkeys(others, ErrorCode.none))
    assert abort_departed_transactions(cluster.open_connection, "app", ()) == others
    assert cluster.aborted == DEPARTED
    assert f"time out: {refused}: {denied.name}" in caplog.text


def test_nothing_more_is_aborted_when_the_members_may_have_changed() -> None:
    cluster = TransactionCluster(dict.fromkeys(DEPARTED, ErrorCode.none))
    first = DEPARTED[:1]
    aborted = abort_departed_transactions(
        cluster.open_connection, "app", (), lambda: not cluster.aborted
    )
    assert aborted == cluster.aborted == first
