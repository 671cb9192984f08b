"""Test who may call the transaction coordinator in which state, and with which error.

The tables are those of transactions v1, which librdkafka speaks. INVALID_PRODUCER_EPOCH stands for
"fenced" where a version is older than the code PRODUCER_FENCED.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import (
    READ_COMMITTED,
    end_offset,
    fetch,
    produce,
)
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.wire import Client
from tests.processes import wait_until

# InitProducerId


def test_a_new_transactional_id_gets_a_producer_id_at_epoch_0(
    client: Client, unique: Callable[[str], str]
) -> None:
    first = init_producer_id(client, unique("txn"))
    second = init_producer_id(client, unique("txn"))
    assert (first.error_code, first.producer_epoch) == (Code.NONE, 0)
    assert (second.error_code, second.producer_epoch) == (Code.NONE, 0)
    assert first.producer_id != second.producer_id


def test_each_producer_without_a_transactional_id_gets_an_id_of_its_own(client: Client) -> None:
    answers = [init_producer_id(client, None) for _ in range(3)]
    assert len({each.producer_id for each in answers}) == 3
    assert {(each.error_code, each.producer_epoch) for each in answers} == {(Code.NONE, 0)}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_known_transactional_id_gets_its_producer_id_again_at_the_next_epoch(
    client: Client, transactional_id: str, version: int
) -> None:
    first = init_producer_id(client, transactional_id, version=version)
    second = init_producer_id(client, transactional_id, version=version)
    assert second.producer_id == first.producer_id
    assert (second.error_code, second.producer_epoch) == (Code.NONE, 1)


def test_an_empty_transactional_id_is_refused_with_42(client: Client) -> None:
    assert init_producer_id(client, "").error_code == Code.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_time_out_that_is_not_positive_or_too_long_is_refused_with_50(
    client: Client, transactional_id: str, timeout_ms: int
) -> None:
    answer = init_producer_id(client, transactional_id, timeout_ms=timeout_ms)
    assert answer.error_code == Code.INVALID_TRANSACTION_TIMEOUT
    assert init_producer_id(client, transactional_id, timeout_ms=900_000).error_code == Code.NONE


def test_a_second_producer_aborts_the_first_one_s_transaction_and_fences_it(
    client: Client, topic: str, transactional_id: str
) -> None:
    old = Producer.init(client, transactional_id)
    old.add(topic)
    old.write(topic, b"of the old one")
    new = Producer.init(client, transactional_id)
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
    assert old.write(topic, b"late").error_code == Code.INVALID_PRODUCER_EPOCH
    assert old.add_partitions(topic) == {topic: Code.INVALID_PRODUCER_EPOCH}
    assert old.add_offsets("any-group") == Code.INVALID_PRODUCER_EPOCH
    assert old.end(committed=True) == Code.INVALID_PRODUCER_EPOCH
    new.add(topic)
    assert new.write(topic, b"of the new one").error_code == Code.NONE
    new.commit()


def test_a_fenced_producer_is_told_90_by_the_versions_that_know_it(
    client: Client, topic: str, transactional_id: str
) -> None:
    old = Producer.init(client, transactional_id)
    Producer.init(client, transactional_id)
    assert old.add_partitions(topic, version=2) == {topic: Code.PRODUCER_FENCED}
    assert old.add_offsets("any-group", version=2) == Code.PRODUCER_FENCED
    assert old.end(committed=True, version=2) == Code.PRODUCER_FENCED


def test_a_producer_that_names_its_epoch_gets_the_next_one_and_its_retry_the_same(
    client: Client, transactional_id: str
) -> None:
    """Check that a producer's retry of InitProducerId returns the same next epoch (KIP-360)."""
    producer_id = init_producer_id(client, transactional_id).producer_id

    def bump(epoch: int) -> tuple[Code, int, int]:
        answer = init_producer_id(client, transactional_id, producer_id=producer_id, epoch=epoch)
        return Code(answer.error_code), answer.producer_id, answer.producer_epoch

    assert bump(0) == (Code.NONE, producer_id, 1)
    assert bump(0) == (Code.NONE, producer_id, 1), "the answer was lost: asked again"
    assert bump(1) == (Code.NONE, producer_id, 2)
    assert bump(0)[0] == Code.PRODUCER_FENCED
    assert bump(9)[0] == Code.PRODUCER_FENCED


def test_a_producer_that_names_its_epoch_has_its_open_transaction_aborted_and_goes_on(
    client: Client, topic: str, transactional_id: str
) -> None:
    """Check the recovery of librdkafka from an abortable error."""
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    old = producer.epoch

    def bump() -> int:
        answer = init_producer_id(
            client, transactional_id, producer_id=producer.producer_id, epoch=old
        )
        assert answer.error_code == Code.NONE
        epoch: int = answer.producer_epoch
        return epoch

    producer.epoch = bump()
    assert producer.epoch > old
    assert bump() == producer.epoch, "the answer was lost: asked again"
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
    producer.sequences.clear()
    producer.add(topic)
    assert producer.write(topic, b"b").error_code == Code.NONE
    producer.commit()


def test_a_producer_that_names_an_old_epoch_is_fenced_while_a_transaction_is_open(
    client: Client, topic: str, transactional_id: str
) -> None:
    old, new = (Producer.init(client, transactional_id) for _ in range(2))
    new.add(topic)
    answer = init_producer_id(
        client, transactional_id, producer_id=old.producer_id, epoch=old.epoch
    )
    assert answer.error_code == Code.PRODUCER_FENCED


def test_a_producer_that_names_its_epoch_is_fenced_once_another_has_started_anew(
    client: Client, transactional_id: str
) -> None:
    """Check that a start without an epoch makes the coordinator forget the epoch before it."""
    old = Producer.init(client, transactional_id)
    new = Producer.init(client, transactional_id)
    answer = init_producer_id(
        client, transactional_id, producer_id=old.producer_id, epoch=old.epoch
    )
    assert answer.error_code == Code.PRODUCER_FENCED
    again = init_producer_id(client, transactional_id, producer_id=new.producer_id, epoch=new.epoch)
    assert (again.error_code, again.producer_epoch) == (Code.NONE, new.epoch + 1)


def test_a_producer_that_names_a_foreign_producer_id_is_fenced(
    client: Client, unique: Callable[[str], str]
) -> None:
    mine = Producer.init(client, unique("txn"))
    other = Producer.init(client, unique("txn"))
    foreign = {"producer_id": other.producer_id, "epoch": mine.epoch}
    answer = init_producer_id(client, mine.transactional_id, **foreign)
    assert answer.error_code == Code.PRODUCER_FENCED
    answer = init_producer_id(client, mine.transactional_id, **foreign, version=3)
    assert answer.error_code == Code.INVALID_PRODUCER_EPOCH


def test_a_producer_id_without_an_epoch_is_refused_with_42(
    client: Client, transactional_id: str
) -> None:
    for wrong in ({"producer_id": 7, "epoch": -1}, {"producer_id": -1, "epoch": 7}):
        answer = init_producer_id(client, transactional_id, **wrong)
        assert answer.error_code == Code.INVALID_REQUEST


# AddPartitionsToTxn


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_partitions_are_added_at_each_version_and_again_without_harm(
    client: Client, topic: str, other_topic: str, transactional_id: str, version: int
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.add_partitions(topic, version=version) == {topic: Code.NONE}
    both = producer.add_partitions(topic, other_topic, version=version)
    assert both == {topic: Code.NONE, other_topic: Code.NONE}
    producer.abort()


def test_with_an_unknown_topic_none_is_added_that_one_gets_3_and_the_rest_55(
    client: Client, topic: str, transactional_id: str, unique: Callable[[str], str]
) -> None:
    producer = Producer.init(client, transactional_id)
    unknown = unique("unknown")
    assert producer.add_partitions(topic, unknown) == {
        topic: Code.OPERATION_NOT_ATTEMPTED,
        unknown: Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.end(committed=True) == Code.INVALID_TXN_STATE, "nothing was added"


def test_a_producer_id_that_is_not_the_transactional_id_s_is_refused_with_49(
    client: Client, topic: str, transactional_id: str
) -> None:
    stranger = Producer(client, transactional_id, producer_id=123_456_789, epoch=0)
    assert stranger.add_partitions(topic) == {topic: Code.INVALID_PRODUCER_ID_MAPPING}
    assert stranger.add_offsets("any-group") == Code.INVALID_PRODUCER_ID_MAPPING
    assert stranger.end(committed=True) == Code.INVALID_PRODUCER_ID_MAPPING
    known = Producer.init(client, transactional_id)
    assert known.producer_id != stranger.producer_id
    assert stranger.add_partitions(topic) == {topic: Code.INVALID_PRODUCER_ID_MAPPING}
    assert stranger.end(committed=True) == Code.INVALID_PRODUCER_ID_MAPPING


# Produce in a transaction


def test_a_write_to_a_partition_that_was_not_added_is_refused_with_48(
    client: Client, topic: str, other_topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.write(topic, b"before any").error_code == Code.INVALID_TXN_STATE
    producer.add(other_topic)
    assert producer.write(topic, b"elsewhere").error_code == Code.INVALID_TXN_STATE
    assert end_offset(client, topic) == 0
    producer.abort()


def test_produce_11_tells_the_same_with_120(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    answer = producer.write(topic, b"a", version=11)
    assert answer.error_code == Code.TRANSACTION_ABORTABLE


def test_after_a_refused_first_batch_none_that_comes_later_in_the_sequence_is_taken(
    client: Client, topic: str, transactional_id: str
) -> None:
    """Check that a second batch in transit isn't appended where the first one was refused."""
    producer = Producer.init(client, transactional_id)
    assert producer.write(topic, b"first").error_code == Code.INVALID_TXN_STATE
    producer.add(topic)
    producer.sequences[topic, 0] = 1
    assert producer.write(topic, b"second").error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.sequences[topic, 0] = 0
    for value in (b"first", b"second"):
        assert producer.write(topic, value).error_code == Code.NONE
    producer.commit()


def test_a_partition_of_the_last_transaction_must_be_added_again(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    producer.commit()
    assert producer.write(topic, b"b").error_code == Code.INVALID_TXN_STATE
    producer.add(topic)
    assert producer.write(topic, b"b").error_code == Code.NONE
    producer.commit()


def test_a_plain_write_by_a_producer_in_a_transaction_is_refused_with_48(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    plain = batches.encode(b"b", producer_id=producer.producer_id, epoch=producer.epoch, sequence=1)
    assert produce(client, topic, plain).error_code == Code.INVALID_TXN_STATE
    producer.abort()


def test_sequences_go_on_from_one_transaction_to_the_next(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    for value in (b"a", b"b"):
        producer.add(topic)
        assert producer.write(topic, value).error_code == Code.NONE
        producer.commit()
    assert producer.sequences == {(topic, 0): 2}
    producer.add(topic)
    producer.sequences[topic, 0] = 7
    assert producer.write(topic, b"c").error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.abort()


def test_a_repeated_transactional_batch_is_kept_once(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    first = producer.write(topic, b"a")
    producer.sequences.clear()
    again = producer.write(topic, b"a")
    assert (again.error_code, again.base_offset) == (Code.NONE, first.base_offset)
    producer.commit()
    assert end_offset(client, topic) == 2


# EndTxn


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_an_end_that_is_repeated_is_granted_and_the_opposite_refused_with_48(
    client: Client, topic: str, transactional_id: str, committed: bool
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    assert producer.end(committed=committed) == Code.NONE
    assert producer.end(committed=committed) == Code.NONE
    assert producer.end(committed=not committed) == Code.INVALID_TXN_STATE
    assert end_offset(client, topic) == 2, "one record, one marker"


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_transaction_that_never_began_can_t_be_ended(
    client: Client, transactional_id: str, committed: bool
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.end(committed=committed) == Code.INVALID_TXN_STATE


def test_every_partition_of_a_transaction_becomes_visible_or_none(
    client: Client, topic: str, other_topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    for finish, count in ((producer.abort, 0), (producer.commit, 1)):
        producer.add(topic, other_topic)
        for name in (topic, other_topic):
            producer.write(name, b"a")
        finish()
        for name in (topic, other_topic):
            markers = [
                each.marker
                for each in batches.decode(fetch(client, name, 0).records)
                if each.is_control
            ]
            assert markers.count("commit") == count


def test_a_transaction_that_takes_longer_than_its_time_out_is_aborted_and_its_producer_fenced(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id, timeout_ms=300)
    producer.add(topic)
    begin = time.monotonic()
    producer.write(topic, b"slow")

    def decided() -> bool:
        return end_offset(client, topic, isolation=READ_COMMITTED) > 0

    wait_until(decided, what="the transaction is still open")
    assert time.monotonic() - begin >= 0.25
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
    assert producer.end(committed=True) == Code.INVALID_PRODUCER_EPOCH
    assert producer.write(topic, b"later").error_code == Code.INVALID_PRODUCER_EPOCH
    successor = Producer.init(client, transactional_id)
    assert successor.epoch > producer.epoch
