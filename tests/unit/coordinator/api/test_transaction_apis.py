"""Test the APIs of transactions: an end, staged offsets, and a log that can't be written to."""

from __future__ import annotations

from typing import Any

from coordinator.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from coordinator.coordinators import TRANSACTION_TOPIC
from coordinator.errors import Code
from coordinator.transactions.state import TransactionStatus
from tests.unit.coordinator.api.apis import (
    FakeBroker,
    commit,
    fetch,
    in_versions,
)


def transactional(broker: FakeBroker, epoch: int = 0) -> dict[str, Any]:
    if broker.coordinators.transactions.find_transaction("app") is None:
        broker.send(init_producer_id, 5, transactional_id="app", transaction_timeout=1000)
    return {"transactional_id": "app", "producer_id": 0, "producer_epoch": epoch}


def add_partitions(broker: FakeBroker, version: int, partitions: list[int]) -> dict[int, int]:
    producer = transactional(broker)
    topics = [{"name": "words", "partitions": partitions}]
    response = broker.send(
        add_partitions_to_txn,
        version,
        transactions=[{**producer, "topics": topics}],
        v3_and_below_topics=topics,
        **{f"v3_and_below_{name}": value for name, value in producer.items()},
    )
    if version < 4:
        [topic] = response.results_by_topic_v3_and_below
    else:
        [topic] = response.results_by_transaction[0].topic_results
    return {
        found.partition_index: found.partition_error_code for found in topic.results_by_partition
    }


@in_versions(add_partitions_to_txn)
def test_an_unknown_partition_keeps_all_others_out(version: int) -> None:
    broker = FakeBroker()
    assert add_partitions(broker, version, [0, 5]) == {
        0: Code.OPERATION_NOT_ATTEMPTED,
        5: Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    transaction = broker.coordinators.transactions.find_transaction("app")
    assert transaction is not None
    assert transaction.partitions == frozenset()


def test_a_transaction_with_a_partition_of_its_own_coordinator_ends_all_the_same() -> None:
    """Check that no marker is written to a partition in which nothing can have been written."""
    broker = FakeBroker()
    producer = transactional(broker)
    topics = [{"name": TRANSACTION_TOPIC, "partitions": [0]}]
    broker.send(add_partitions_to_txn, 4, transactions=[{**producer, "topics": topics}])
    assert broker.send(end_txn, 4, **producer, committed=True).error_code == 0
    transaction = broker.coordinators.transactions.find_transaction("app")
    assert transaction is not None
    assert transaction.status is TransactionStatus.COMPLETE_COMMIT


@in_versions(end_txn)
def test_end_txn(version: int) -> None:
    broker = FakeBroker()
    producer = transactional(broker)
    add_partitions(broker, 3, [0])
    ended = broker.send(end_txn, version, **producer, committed=True)
    assert ended.error_code == 0
    epoch_of_marker = 1 if version >= 5 else 0
    assert broker.topics.find_partition("words", 0).markers() == [(0, epoch_of_marker, True)]
    if version >= 5:
        assert (ended.producer_id, ended.producer_epoch) == (0, 1)
    old = broker.send(end_txn, version, **{**producer, "producer_epoch": 7}, committed=True)
    expected = Code.PRODUCER_FENCED if version >= 2 else Code.INVALID_PRODUCER_EPOCH
    assert old.error_code == expected
    turned = broker.send(end_txn, version, **producer, committed=False)
    assert turned.error_code == Code.INVALID_TXN_STATE
    if version >= 5:
        assert (turned.producer_id, turned.producer_epoch) == (-1, -1)


def stage(broker: FakeBroker, version: int, epoch: int = 0, **member: Any) -> dict[int, int]:
    response = broker.send(
        txn_offset_commit,
        version,
        **transactional(broker, epoch),
        group_id="counts",
        topics=[
            {
                "name": "words",
                "partitions": [
                    {"partition_index": i, "committed_offset": 5, "committed_metadata": None}
                    for i in (0, 9)
                ],
            }
        ],
        **member,
    )
    [topic] = response.topics
    return {found.partition_index: found.error_code for found in topic.partitions}


@in_versions(txn_offset_commit)
def test_old_producers_are_not_told_that_the_group_is_being_loaded(version: int) -> None:
    broker = FakeBroker()
    broker.send(add_offsets_to_txn, 4, **transactional(broker), group_id="counts")
    assert stage(broker, version)[0] == Code.NONE
    groups = broker.coordinators.groups
    index = groups.partition_of("counts")
    groups.resign_shard(index)
    groups.elect_shard(index)
    loading = Code.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else Code.COORDINATOR_NOT_AVAILABLE
    assert stage(broker, version) == {0: loading, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}


@in_versions(txn_offset_commit)
def test_txn_offset_commit(version: int) -> None:
    broker = FakeBroker()
    if version < 5:
        not_registered = Code.TRANSACTION_ABORTABLE if version >= 4 else Code.INVALID_TXN_STATE
        assert stage(broker, version) == {0: not_registered, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
        broker.send(add_offsets_to_txn, 4, **transactional(broker), group_id="counts")
    assert stage(broker, version) == {0: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert stage(broker, version, epoch=7)[0] == Code.INVALID_PRODUCER_EPOCH
    if version >= 3:
        assert stage(broker, version, generation_id=4, member_id="m") == {
            0: Code.UNKNOWN_MEMBER_ID,
            9: Code.UNKNOWN_TOPIC_OR_PARTITION,
        }
    fetched = fetch(broker, 7)
    assert fetched == {0: (-1, Code.UNSTABLE_OFFSET_COMMIT), 1: (-1, 0)}
    broker.send(end_txn, 4, **transactional(broker), committed=True)
    assert fetch(broker, 7) == {0: (5, 0), 1: (-1, 0)}


def test_a_log_that_can_not_be_written_to_is_no_coordinator() -> None:
    broker = FakeBroker()
    for topic in ("__consumer_offsets", "__transaction_state"):
        for log in broker.topics.get(topic).partitions:
            log.fail_after = 0
    assert commit(broker, 9)[0] == Code.NOT_COORDINATOR
    response = broker.send(init_producer_id, 5, transactional_id="a", transaction_timeout=1000)
    assert response.error_code == Code.NOT_COORDINATOR


def test_a_transactional_append_is_checked_against_the_transaction() -> None:
    broker = FakeBroker()
    add_partitions(broker, 3, [0])

    def check(partition: int = 0, epoch: int = 0, id_: str | None = "app", pid: int = 0) -> Code:
        return broker.coordinators.verify_transactional_append(
            id_, pid, epoch, ("words", partition), implicit=False
        )

    assert check() is Code.NONE
    assert check(partition=1) is Code.INVALID_TXN_STATE
    assert check(epoch=1) is Code.INVALID_PRODUCER_EPOCH
    assert check(pid=7) is Code.INVALID_PRODUCER_ID_MAPPING
    assert check(id_=None) is Code.INVALID_TXN_STATE
    broker.topics.find_partition("words", 0).fail_after = 0
    broker.send(end_txn, 4, **transactional(broker), committed=True)
    assert check() is Code.CONCURRENT_TRANSACTIONS
