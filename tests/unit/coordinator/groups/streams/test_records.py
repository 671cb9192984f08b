"""Test that streams group records are, byte for byte, those of Kafka 4.4's own classes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.state import GroupCodec
from coordinator.groups.streams.record_types import (
    StreamsCurrentAssignmentSaved,
    StreamsGroupSaved,
    StreamsMemberState,
)
from coordinator.groups.streams.tasks import AssignedTasks
from coordinator.shard.record_fields import UnknownRecordVersion
from tests.unit.coordinator.groups.streams.golden import STREAMS_GOLDEN, StreamsGolden

CURRENT_KEY = bytes.fromhex("00160006636f756e747300026d31")
VALUED = [each for each in STREAMS_GOLDEN if each.value is not None]


def name(golden: StreamsGolden) -> str:
    return type(golden.record).__name__


@pytest.mark.parametrize("golden", STREAMS_GOLDEN, ids=name)
def test_kafka_s_bytes_are_read(golden: StreamsGolden) -> None:
    value = None if golden.value is None else bytes.fromhex(golden.value)
    assert GroupCodec().decode_record(bytes.fromhex(golden.key), value) == golden.record


@pytest.mark.parametrize("golden", STREAMS_GOLDEN, ids=name)
def test_a_record_is_written_as_kafka_writes_it(golden: StreamsGolden) -> None:
    key, value = GroupCodec().encode_record(golden.record)
    assert (key and key.hex(), value and value.hex()) == (golden.key, golden.value)


def test_the_group_of_a_broker_that_keeps_no_settings_is_read() -> None:
    key = bytes.fromhex(STREAMS_GOLDEN[0].key)
    value = bytes.fromhex("0000" + "00000007" + "0000000000000000" + "00")
    assert GroupCodec().decode_record(key, value) == StreamsGroupSaved("counts", 7)


@pytest.mark.parametrize("epochs", ["00", "01000100", "01000603000000010000000200"])
def test_an_active_task_without_an_epoch_has_the_member_s(epochs: str) -> None:
    tags = epochs if len(epochs) < 20 else "010009030000000100000002"
    value = "0000" + "0000000700000006" + "01" + "02" + "0230" + "0200000003" + tags
    value += "01" * 5 + "00"
    found = GroupCodec().decode_record(CURRENT_KEY, bytes.fromhex(value))
    assert isinstance(found, StreamsCurrentAssignmentSaved)
    assert found.assigned == AssignedTasks({("0", 3): 7})


def test_a_state_that_a_newer_broker_has_is_unknown() -> None:
    [golden] = [e for e in VALUED if isinstance(e.record, StreamsCurrentAssignmentSaved)]
    value = bytearray.fromhex(golden.value or "")
    value[10] = 9
    found = GroupCodec().decode_record(CURRENT_KEY, bytes(value))
    assert isinstance(golden.record, StreamsCurrentAssignmentSaved)
    assert found == replace(golden.record, state=StreamsMemberState.UNKNOWN)


@pytest.mark.parametrize("golden", VALUED, ids=name)
def test_a_value_of_another_version_is_not_read(golden: StreamsGolden) -> None:
    value = b"\0\1" + bytes.fromhex(golden.value or "")[2:]
    with pytest.raises(UnknownRecordVersion):
        GroupCodec().decode_record(bytes.fromhex(golden.key), value)


@pytest.mark.parametrize("golden", VALUED, ids=name)
def test_a_value_that_ends_early_is_refused(golden: StreamsGolden) -> None:
    value = bytes.fromhex(golden.value or "")
    for end in range(len(value)):
        with pytest.raises(ValueError, match=r"bytes|null"):
            GroupCodec().decode_record(bytes.fromhex(golden.key), value[:end])
