"""Test that offset records are, byte for byte, those of Kafka 4.3's own classes."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordinator.groups.state import GroupCodec
from coordinator.offsets.state import OffsetCommitted, OffsetForgotten
from coordinator.shard.record_fields import UnknownRecordVersion

KEY = bytes.fromhex("00010006636f756e74730005776f72647300000002")
PLAIN = bytes.fromhex("0004000000000000002a00000000056d6574610000018bcfe5687b00")
WITH_ID = bytes.fromhex(
    "0004000000000000002a00000000056d6574610000018bcfe5687b01001000000000000000010000000000000002"
)
VERSIONS = (
    "0000000000000000002a00046d6574610000018bcfe5687b",
    "0001000000000000002a00046d6574610000018bcfe5687bffffffffffffffff",
    "0002000000000000002a00046d6574610000018bcfe5687b",
    "0003000000000000002a0000000000046d6574610000018bcfe5687b",
    PLAIN.hex(),
)
COMMITTED = OffsetCommitted("counts", "words", 2, 42, 0, "meta", 1_700_000_000_123)
TOPIC_ID = UUID(int=(1 << 64) + 2)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    assert GroupCodec().encode_record(COMMITTED) == (KEY, PLAIN)
    assert GroupCodec().encode_record(COMMITTED._replace(topic_id=TOPIC_ID)) == (KEY, WITH_ID)
    assert GroupCodec().encode_record(OffsetForgotten("counts", "words", 2)) == (KEY, None)


@pytest.mark.parametrize(
    ("value", "leader_epoch"), tuple(zip(VERSIONS, [-1, -1, -1, 0, 0], strict=True))
)
def test_every_version_is_read(value: str, leader_epoch: int) -> None:
    record = COMMITTED._replace(leader_epoch=leader_epoch)
    assert GroupCodec().decode_record(KEY, bytes.fromhex(value)) == record


def test_an_offset_that_says_when_it_expires_is_written_in_the_version_that_can_say_so() -> None:
    expiring = bytes.fromhex("0001000000000000002a00046d6574610000018bcfe5687b0000018bcfe56c63")
    record = COMMITTED._replace(leader_epoch=-1, expires_at_ms=COMMITTED.committed_at_ms + 1_000)
    assert GroupCodec().encode_record(record) == (KEY, expiring)
    assert GroupCodec().decode_record(KEY, expiring) == record


def test_what_is_written_is_read_back() -> None:
    assert GroupCodec().decode_record(KEY, WITH_ID) == COMMITTED._replace(topic_id=TOPIC_ID)
    assert GroupCodec().decode_record(KEY, None) == OffsetForgotten("counts", "words", 2)


def test_a_version_from_the_future_is_unknown() -> None:
    with pytest.raises(UnknownRecordVersion, match="value version 5"):
        GroupCodec().decode_record(KEY, bytes.fromhex("0005") + PLAIN[2:])


def test_a_key_of_an_unknown_type_is_passed_over() -> None:
    assert GroupCodec().decode_record(bytes.fromhex("000b") + KEY[2:], PLAIN) is None


@pytest.mark.parametrize(
    "key", [KEY[:-1], KEY[:-4], KEY[:5], KEY[:2], KEY[:-4] + b"\0" + KEY[-4:]], ids=bytes.hex
)
def test_a_key_that_ends_early_or_late_is_damage(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes|group and topic"):
        GroupCodec().decode_record(key, PLAIN)
