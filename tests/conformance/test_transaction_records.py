"""Test that our codec writes the records of `__transaction_state` as either broker did.

Each value that is found in the files is read with our codec and written again: byte for byte the
same. Real Kafka's files hold what its own classes have written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from coordinator.errors import Code
from coordinator.log.batch import iterate_batches
from coordinator.transactions.records import TransactionCodec
from coordinator.transactions.state import (
    V0,
    V2,
    TransactionMetadata,
    TransactionSaved,
    TransactionStatus,
)
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.transactions import describe
from tests.conformance.wire import Client
from tests.processes import UNREACHED_MS, wait_until


def assert_same(
    ours: tuple[bytes | None, bytes | None],
    found: tuple[bytes | None, bytes | None],
    transaction: TransactionMetadata,
) -> None:
    """Compare bytes, except for the order of topics, which Kafka has from their hashes."""
    if len({topic for topic, _ in transaction.partitions}) < 2:
        assert ours == found
        return
    (our_key, our_value), (key, value) = ours, found
    assert our_key == key
    assert sorted(our_value or b"") == sorted(value or b"")


def saved(broker: Broker, transactional_id: str) -> list[TransactionMetadata]:
    """Return the records of one id in order, each checked by writing it again with our codec."""
    codec = TransactionCodec(lambda: V2)
    found = []
    for file in sorted(broker.data_dir.glob("__transaction_state-*/*.log")):
        for batch in iterate_batches(file.read_bytes()):
            if batch.is_control:
                continue
            for raw in batch.iterate_records():
                record = codec.decode_record(raw.key, raw.value)
                if isinstance(record, TransactionSaved):
                    assert_same(
                        codec.encode_record(record), (raw.key, raw.value), record.transaction
                    )
                    if record.transaction.transactional_id == transactional_id:
                        found.append(record.transaction)
    return found


def test_what_is_in_the_log_is_what_kafka_writes_in_both_versions(
    broker: Broker, client: Client, transactional_id: str, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    create_topic(client, topic)
    producer = Producer.init(client, transactional_id)

    def completed() -> None:
        wait_until(
            lambda: describe(client, transactional_id).state.startswith("Complete"),
            what="the transaction is not completed",
        )

    producer.add(topic)
    producer.commit()
    producer.write(topic, b"a", version=12)
    assert producer.end(committed=False, version=5) == Code.NONE
    completed()
    init_producer_id(client, transactional_id)
    records = saved(broker, transactional_id)
    mine = producer.producer_id
    assert [
        (each.status, each.producer_epoch, each.client_version, len(each.partitions))
        for each in records
    ] == [
        (TransactionStatus.EMPTY, 0, V0, 0),
        (TransactionStatus.ONGOING, 0, V0, 1),
        (TransactionStatus.PREPARE_COMMIT, 0, V0, 1),
        (TransactionStatus.COMPLETE_COMMIT, 0, V0, 0),
        (TransactionStatus.ONGOING, 0, V2, 1),
        (TransactionStatus.PREPARE_ABORT, 1, V2, 1),
        (TransactionStatus.COMPLETE_ABORT, 1, V2, 0),
        (TransactionStatus.EMPTY, 2, V2, 0),
    ]
    at_rest = {
        (each.producer_id, each.previous_producer_id, each.next_producer_id, each.timeout_ms)
        for each in records
    }
    assert at_rest == {(mine, mine, -1, UNREACHED_MS)}
    for each in records:
        assert (each.start_ms < 0) == (each.status is TransactionStatus.EMPTY)
        assert replace(each, start_ms=0).update_ms >= records[0].update_ms


def test_after_a_crash_retries_and_open_transactions_are_what_the_log_says(
    broker: Broker, connect: Callable[[], Client], unique: Callable[[str], str]
) -> None:
    """Check retries after a crash: InitProducerId is fenced, EndTxn is answered.

    The log has no last epoch, by which InitProducerId's would be known.
    """
    client = connect()
    topic = unique("topic")
    create_topic(client, topic)
    bumped, ended, begun = (Producer.init(client, unique("txn")) for _ in range(3))
    answer = init_producer_id(
        client, bumped.transactional_id, producer_id=bumped.producer_id, epoch=0
    )
    assert (answer.error_code, answer.producer_epoch) == (Code.NONE, 1)
    for producer in (ended, begun):
        assert producer.write(topic, b"a", version=12).error_code == Code.NONE
    assert ended.end(committed=True, version=5) == Code.NONE
    broker.kill()
    broker.restart()
    client = connect()
    answer = init_producer_id(
        client, bumped.transactional_id, producer_id=bumped.producer_id, epoch=0
    )
    assert answer.error_code == Code.PRODUCER_FENCED
    again = Producer(client, ended.transactional_id, ended.producer_id, 0)
    assert (again.end(committed=True, version=5), again.epoch) == (Code.NONE, 1)
    begun.client = client
    assert begun.write(topic, b"b", version=12).error_code == Code.NONE
    assert (begun.end(committed=True, version=5), begun.epoch) == (Code.NONE, 1)
