"""Test that transaction records are, byte for byte, those of Kafka 4.3's own classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.transactions.producer_ids import ProducerIdsAllocated, ProducerIdsCodec
from coordinator.transactions.records import TransactionCodec
from coordinator.transactions.state import (
    V2,
    TransactionForgotten,
    TransactionMetadata,
    TransactionSaved,
    TransactionStatus,
)

KEY = bytes.fromhex("000000056170702d31")
ONGOING = bytes.fromhex(
    "00000000000000000fa000030000ea60010000000200125f5f636f6e73756d65725f6f66667365747300000001"
    "000000070005776f7264730000000200000000000000020000018bcfe5687b0000018bcfe56864"
)
EMPTY = bytes.fromhex("00000000000000000fa000030000ea6000ffffffff0000018bcfe5687bffffffffffffffff")
ONGOING_V1 = bytes.fromhex(
    "00010000000000000fa000030000ea600103135f5f636f6e73756d65725f6f666673657473020000000700"
    "06776f726473030000000000000002000000018bcfe5687b0000018bcfe568640300080000000000000f9f"
    "0108000000000000138802020002"
)

V0_CODEC = TransactionCodec(lambda: 0)
V2_CODEC = TransactionCodec(lambda: 2)

TRANSACTION = TransactionMetadata(
    transactional_id="app-1",
    producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    status=TransactionStatus.ONGOING,
    update_ms=1_700_000_000_123,
    start_ms=1_700_000_000_100,
    partitions=frozenset({("words", 2), ("words", 0), ("__consumer_offsets", 7)}),
)
REST = TransactionMetadata(
    transactional_id="app-1",
    producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    status=TransactionStatus.EMPTY,
    update_ms=1_700_000_000_123,
)


def test_an_ongoing_transaction_is_written_as_kafka_writes_it() -> None:
    assert V0_CODEC.encode_record(TransactionSaved(TRANSACTION)) == (KEY, ONGOING)


def test_an_empty_transaction_has_null_partitions() -> None:
    assert V0_CODEC.encode_record(TransactionSaved(REST)) == (KEY, EMPTY)


def test_an_expired_id_is_a_tombstone() -> None:
    assert V0_CODEC.encode_record(TransactionForgotten("app-1")) == (KEY, None)


def test_what_is_written_is_read_back() -> None:
    for record in (TransactionSaved(TRANSACTION), TransactionSaved(REST)):
        assert V0_CODEC.decode_record(*V0_CODEC.encode_record(record)) == record
    assert V0_CODEC.decode_record(KEY, None) == TransactionForgotten("app-1")


IN_V2 = replace(TRANSACTION, previous_producer_id=3999, next_producer_id=5000, client_version=V2)


def test_transactions_v2_adds_producer_ids_and_the_client_s_version_as_kafka_does() -> None:
    assert V2_CODEC.encode_record(TransactionSaved(IN_V2)) == (KEY, ONGOING_V1)


@pytest.mark.parametrize("codec", [V0_CODEC, V2_CODEC], ids=["level 0", "level 2"])
def test_a_record_of_either_version_is_read_at_any_level(codec: TransactionCodec) -> None:
    assert codec.decode_record(KEY, ONGOING_V1) == TransactionSaved(IN_V2)
    assert codec.decode_record(KEY, ONGOING) == TransactionSaved(TRANSACTION)


def test_a_producer_id_block_is_written_as_kafka_writes_it() -> None:
    record = ProducerIdsAllocated(3000, broker_id=1, broker_epoch=2)
    value = bytes.fromhex("010f000000000100000000000000020000000000000bb800")
    assert ProducerIdsCodec().encode_record(record) == (None, value)
    assert ProducerIdsCodec().decode_record(None, value) == record
