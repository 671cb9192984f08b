"""List and describe transactions and producers, and write markers, as an admin does."""

from __future__ import annotations

from typing import Any, NamedTuple

from coordinator.errors import Code
from tests.conformance.wire import Api, Client


def list_transactions(client: Client, version: int = 0, **filters: Any) -> dict[str, str]:
    """Return the state of each transactional id that passes the filters, by ListTransactions."""
    response = client.send(
        Api.LIST_TRANSACTIONS,
        version,
        **{"state_filters": (), "producer_id_filters": (), **filters},
    )
    assert response.error_code == Code.NONE
    return {each.transactional_id: each.transaction_state for each in response.transaction_states}


class Described(NamedTuple):
    code: Code
    state: str
    producer_id: int
    epoch: int
    started: bool
    partitions: list[tuple[str, int]]


def describe(client: Client, transactional_id: str) -> Described:
    """Return DescribeTransactions' part about one id."""
    response = client.send(Api.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[transactional_id])
    [found] = response.transaction_states
    return Described(
        Code(found.error_code),
        found.transaction_state,
        found.producer_id,
        found.producer_epoch,
        found.transaction_start_time > 0,
        sorted((topic.topic, index) for topic in found.topics for index in topic.partitions),
    )


class ActiveProducer(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    coordinator_epoch: int
    first_offset: int


def describe_producers(client: Client, topic: str, index: int = 0) -> list[ActiveProducer] | Code:
    """Return the producers of one partition by DescribeProducers, or the code of the refusal."""
    asked = [{"name": topic, "partition_indexes": [index]}]
    response = client.send(Api.DESCRIBE_PRODUCERS, 0, topics=asked)
    [partition] = response.topics[0].partitions
    if partition.error_code != Code.NONE:
        return Code(partition.error_code)
    return sorted(
        ActiveProducer(
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.coordinator_epoch,
            each.current_txn_start_offset,
        )
        for each in partition.active_producers
    )


def write_marker(
    client: Client,
    topic: str,
    producer_id: int,
    epoch: int,
    *,
    committed: bool,
    coordinator_epoch: int = 0,
    transaction_version: int | None = None,
) -> Code:
    """Write a marker to partition 0 by WriteTxnMarkers.

    It has version 1, or 2 with a transaction version.
    """
    marker: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": committed,
        "topics": [{"name": topic, "partition_indexes": [0]}],
        "coordinator_epoch": coordinator_epoch,
    }
    if transaction_version is not None:
        marker["transaction_version"] = transaction_version
    version = 1 if transaction_version is None else 2
    response = client.send(Api.WRITE_TXN_MARKERS, version, markers=[marker])
    return Code(response.markers[0].topics[0].partitions[0].error_code)
