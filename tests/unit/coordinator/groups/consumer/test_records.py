"""Test that consumer group records are, byte for byte, those of Kafka 4.3's own classes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from coordinator.groups.consumer.record_types import (
    CurrentAssignmentSaved,
    MemberState,
    Record,
    SubscriptionMetadataSaved,
)
from coordinator.groups.consumer.records import decode_consumer_record, encode_consumer_record
from coordinator.shard.record_fields import FieldReader
from tests.unit.coordinator.groups.consumer.golden import GOLDEN, Golden

TOPIC = UUID(int=2)
CURRENT = CurrentAssignmentSaved("counts", "m1", 7, 6, MemberState.STABLE, {TOPIC: {3: 7}}, {})
CURRENT_KEY = bytes.fromhex("00080006636f756e747300026d31")


def decode(key: bytes, value: bytes | None) -> Record:
    reader = FieldReader(key)
    return decode_consumer_record(reader.read_int16(), reader, value)


def name(golden: Golden) -> str:
    return type(golden.record).__name__


@pytest.mark.parametrize("golden", GOLDEN, ids=name)
def test_kafka_s_bytes_are_read(golden: Golden) -> None:
    value = None if golden.value is None else bytes.fromhex(golden.value)
    assert decode(bytes.fromhex(golden.key), value) == golden.record


WRITTEN = [each for each in GOLDEN if not isinstance(each.record, SubscriptionMetadataSaved)]


@pytest.mark.parametrize("golden", WRITTEN, ids=name)
def test_a_record_is_written_as_kafka_writes_it(golden: Golden) -> None:
    key, value = encode_consumer_record(golden.record)
    assert (key.hex(), None if value is None else value.hex()) == (golden.key, golden.value)


def test_what_kafka_no_longer_writes_is_not_written() -> None:
    with pytest.raises(ValueError, match="only read"):
        encode_consumer_record(SubscriptionMetadataSaved("counts"))


@pytest.mark.parametrize(
    ("member_epoch", "epochs", "expected"),
    [
        (7, "00", 7),  # before 4.3: no tag
        (7, "01000100", 7),  # null
        (7, "010009030000000100000002", 7),  # two epochs of one partition
        (-2, "00", 0),  # a static member that is away
    ],
)
def test_a_partition_without_an_epoch_has_the_member_s(
    member_epoch: int, epochs: str, expected: int
) -> None:
    value = bytes(2) + member_epoch.to_bytes(4, "big", signed=True)
    value += bytes.fromhex("000000060002") + TOPIC.bytes + bytes.fromhex("0200000003" + epochs)
    found = decode(CURRENT_KEY, value + bytes.fromhex("0100"))
    assert found == replace(CURRENT, epoch=member_epoch, assigned={TOPIC: {3: expected}})


def test_a_state_that_a_newer_broker_has_is_unknown() -> None:
    found = decode(CURRENT_KEY, bytes.fromhex("0000000000070000000605010100"))
    assert found == replace(CURRENT, state=MemberState.UNKNOWN, assigned={})


@pytest.mark.parametrize("golden", [each for each in WRITTEN if each.value], ids=name)
def test_a_value_that_ends_early_is_refused(golden: Golden) -> None:
    value = bytes.fromhex(golden.value or "")
    for end in range(len(value)):
        with pytest.raises(ValueError, match="end before"):
            decode(bytes.fromhex(golden.key), value[:end])
