"""Test transactions v2 (KIP-890): every end bumps the epoch, and writes add their partitions.

Clients of both versions share a broker, and a transactional id may go from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import READ_COMMITTED, end_offset, fetch, settled_offset
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.transactions import describe
from tests.conformance.wire import Api, Client
from tests.processes import wait_until


def markers(client: Client, topic: str) -> list[tuple[str | None, int]]:
    """Return (outcome, epoch) of each marker in partition 0, once they are all there."""
    found = batches.decode(fetch(client, topic, 0).records)
    return [(each.marker, each.producer_epoch) for each in found if each.is_control]


def completed(client: Client, transactional_id: str) -> None:
    wait_until(
        lambda: describe(client, transactional_id).state.startswith("Complete"),
        what="the transaction is not completed",
    )


def test_a_write_adds_its_partition_and_every_end_bumps_the_epoch(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    for turn, committed in enumerate((True, False, True)):
        assert producer.write(topic, b"a", version=12).error_code == Code.NONE
        assert describe(client, transactional_id).partitions == [(topic, 0)]
        assert producer.end(committed, version=5) == Code.NONE
        assert producer.epoch == turn + 1
        completed(client, transactional_id)
    assert markers(client, topic) == [("commit", 1), ("abort", 2), ("commit", 3)]


def test_offsets_add_their_group_by_themselves(
    client: Client, topic: str, transactional_id: str, unique: Callable[[str], str]
) -> None:
    group = unique("group")
    producer = Producer.init(client, transactional_id)
    assert producer.stage_offset(group, topic, 7, version=5) == Code.NONE
    [(internal, _)] = describe(client, transactional_id).partitions
    assert internal == "__consumer_offsets"
    assert producer.end(committed=True, version=5) == Code.NONE
    assert settled_offset(client, group, topic) == 7


def test_an_end_is_answered_again_with_the_same_epoch(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)
    assert producer.end(committed=True, version=5) == Code.NONE
    assert producer.epoch == 1
    completed(client, transactional_id)
    retry = Producer(client, transactional_id, producer.producer_id, 0)
    assert retry.end(committed=True, version=5) == Code.NONE
    assert retry.epoch == 1
    retry.epoch = 0
    assert retry.end(committed=False, version=5) == Code.INVALID_TXN_STATE
    assert producer.write(topic, b"b", version=12).error_code == Code.NONE
    assert retry.end(committed=True, version=5) == Code.PRODUCER_FENCED, "the next has begun"
    producer.end(committed=True, version=5)


def test_an_abort_of_nothing_bumps_the_epoch_and_a_commit_is_refused_with_48(
    client: Client, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.end(committed=True, version=5) == Code.INVALID_TXN_STATE
    for epoch in (1, 2):
        assert producer.end(committed=False, version=5) == Code.NONE
        assert producer.epoch == epoch
        completed(client, transactional_id)
    assert producer.end(committed=True, version=5) == Code.INVALID_TXN_STATE


def test_an_old_epoch_writes_nothing_and_ends_nothing(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)
    late = Producer(client, transactional_id, producer.producer_id, 0, {(topic, 0): 1})
    producer.end(committed=True, version=5)
    completed(client, transactional_id)
    assert late.write(topic, b"late", version=12).error_code == Code.INVALID_PRODUCER_EPOCH
    assert late.add_partitions(topic, version=3) == {topic: Code.PRODUCER_FENCED}
    assert end_offset(client, topic) == 2


def test_a_stranger_s_write_is_refused_by_what_is_wrong_with_it(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    stranger = Producer(client, transactional_id, producer.producer_id + 123_456, 0)
    code = stranger.write(topic, b"a", version=12).error_code
    assert code == Code.INVALID_PRODUCER_ID_MAPPING
    ahead = Producer(client, transactional_id, producer.producer_id, 5)
    assert ahead.write(topic, b"a", version=12).error_code == Code.INVALID_PRODUCER_EPOCH
    assert end_offset(client, topic) == 0


def test_sequences_of_a_new_producer_begin_with_0(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.sequences[topic, 0] = 5
    code = producer.write(topic, b"a", version=12).error_code
    assert code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.sequences.clear()
    assert producer.write(topic, b"a", version=12).error_code == Code.NONE
    producer.end(committed=False, version=5)


# Both versions


def test_a_v1_client_ends_what_a_v2_client_began(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)
    producer.commit()
    assert describe(client, transactional_id).epoch == 0, "no bump"
    assert markers(client, topic) == [("commit", 0)]


def test_a_v2_client_ends_what_a_v1_client_began(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    old = Producer(client, transactional_id, producer.producer_id, producer.epoch)
    producer.add(topic)
    producer.write(topic, b"a", version=10)
    assert producer.end(committed=True, version=5) == Code.NONE
    assert producer.epoch == 1
    completed(client, transactional_id)
    assert old.add_partitions(topic) == {topic: Code.INVALID_PRODUCER_EPOCH}
    producer.add(topic)
    assert producer.write(topic, b"b", version=10).error_code == Code.NONE
    producer.commit()
    assert markers(client, topic) == [("commit", 1), ("commit", 1)]


def test_a_new_v1_producer_takes_over_from_v2_in_the_middle_of_a_transaction(
    client: Client, topic: str, transactional_id: str
) -> None:
    old = Producer.init(client, transactional_id)
    old.write(topic, b"of v2", version=12)
    new = Producer.init(client, transactional_id)
    assert (new.producer_id, new.epoch) == (old.producer_id, 2)
    assert old.end(committed=True, version=5) == Code.PRODUCER_FENCED
    new.add(topic)
    assert new.write(topic, b"of v1", version=10).error_code == Code.NONE
    new.commit()
    assert markers(client, topic) == [("abort", 1), ("commit", 2)]


# InitProducerId and time-outs


def test_a_producer_that_names_its_epoch_gets_the_one_that_the_abort_has_left(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)

    def bump(epoch: int) -> tuple[Code, int]:
        answer = init_producer_id(
            client, transactional_id, producer_id=producer.producer_id, epoch=epoch
        )
        return Code(answer.error_code), answer.producer_epoch

    assert bump(0) == bump(0) == (Code.NONE, 1)
    assert describe(client, transactional_id).state == "Empty"
    assert bump(7) == (Code.PRODUCER_FENCED, -1)


def test_a_stale_producer_s_init_aborts_the_owner_s_transaction_and_is_refused(
    client: Client, topic: str, transactional_id: str
) -> None:
    old, owner = (Producer.init(client, transactional_id) for _ in range(2))
    owner.write(topic, b"a", version=12)
    answer = init_producer_id(
        client, transactional_id, producer_id=old.producer_id, epoch=old.epoch
    )
    assert answer.error_code == Code.PRODUCER_FENCED
    found = describe(client, transactional_id)
    assert (found.state, found.epoch) == ("CompleteAbort", 2)
    again = init_producer_id(
        client, transactional_id, producer_id=owner.producer_id, epoch=owner.epoch
    )
    assert (again.error_code, again.producer_epoch) == (Code.NONE, 2)


@pytest.mark.parametrize("client_version", [1, 2])
def test_a_time_out_bumps_the_epoch_once_and_its_producer_may_go_on(
    client: Client, topic: str, transactional_id: str, client_version: int
) -> None:
    producer = Producer.init(client, transactional_id, timeout_ms=200)
    if client_version == 1:
        producer.add(topic)
    producer.write(topic, b"a", version=10 if client_version == 1 else 12)
    completed(client, transactional_id)
    assert describe(client, transactional_id).epoch == 1
    assert markers(client, topic) == [("abort", 1)]
    if client_version == 1:
        assert producer.end(committed=True) == Code.INVALID_PRODUCER_EPOCH
    else:
        assert producer.end(committed=True, version=5) == Code.INVALID_TXN_STATE
    answer = init_producer_id(
        client, transactional_id, producer_id=producer.producer_id, epoch=producer.epoch
    )
    assert (answer.error_code, answer.producer_epoch) == (Code.NONE, 1)


# AddPartitionsToTxn between brokers


def batched(client: Client, version: int, *transactions: dict[str, Any]) -> list[dict[Any, Code]]:
    response = client.send(Api.ADD_PARTITIONS_TO_TXN, version, transactions=transactions)
    assert response.error_code == Code.NONE
    return [
        {
            (topic.name, each.partition_index): Code(each.partition_error_code)
            for topic in found.topic_results
            for each in topic.results_by_partition
        }
        for found in response.results_by_transaction
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_are_added_to_or_verified_in_one_request(
    client: Client, topic: str, transactional_id: str, unique: Callable[[str], str], version: int
) -> None:
    producer = Producer.init(client, transactional_id)

    def asked(
        *, verify: bool = False, partition: int = 0, epoch: int = 0, name: str = transactional_id
    ) -> dict[str, Any]:
        return {
            "transactional_id": name,
            "producer_id": producer.producer_id,
            "producer_epoch": epoch,
            "verify_only": verify,
            "topics": [{"name": topic, "partitions": [partition]}],
        }

    first = (topic, 0)
    [verified] = batched(client, version, asked(verify=True))
    assert verified == {first: Code.TRANSACTION_ABORTABLE}
    answers = batched(client, version, asked(), asked(name=unique("unknown")), asked(name=""))
    assert answers == [
        {first: Code.NONE},
        {first: Code.INVALID_PRODUCER_ID_MAPPING},
        {first: Code.INVALID_REQUEST},
    ]
    verified, fenced = batched(client, version, asked(verify=True), asked(verify=True, epoch=1))
    assert (verified, fenced) == ({first: Code.NONE}, {first: Code.PRODUCER_FENCED})
    [unknown] = batched(client, version, asked(partition=9))
    assert unknown == {(topic, 9): Code.UNKNOWN_TOPIC_OR_PARTITION}
    producer.abort()


# Retries


def test_a_late_batch_of_an_aborted_transaction_can_t_get_into_the_next(
    client: Client, topic: str, transactional_id: str
) -> None:
    """Check the reason for transactions v2: before, such a batch became part of the next one."""
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)
    late = Producer(client, transactional_id, producer.producer_id, 0, {(topic, 0): 1})
    producer.end(committed=False, version=5)
    completed(client, transactional_id)
    assert producer.write(topic, b"b", version=12).error_code == Code.NONE
    assert late.write(topic, b"late", version=12).error_code == Code.INVALID_PRODUCER_EPOCH
    producer.end(committed=True, version=5)
    completed(client, transactional_id)
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    records = [value for each in batches.decode(answer.records) for _, value in each.records]
    assert b"late" not in records
