"""Test that Produce refuses malformed batches and those its topic forbids, without a trace."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest
from crc32c import crc32c

from coordinator.errors import Code
from coordinator.log.compression import CompressionType, compress_records
from tests.conformance import batches
from tests.conformance.calls import create_topic, end_offset, fetch, produce
from tests.conformance.wire import Client


def test_a_batch_with_a_wrong_checksum_is_refused_with_2_and_leaves_no_trace(
    client: Client, topic: str
) -> None:
    answer = produce(client, topic, batches.encode(b"a", corrupt=True))
    assert (answer.error_code, answer.base_offset) == (Code.CORRUPT_MESSAGE, -1)
    assert end_offset(client, topic) == 0


def test_a_batch_above_the_topic_s_limit_is_refused_with_10(client: Client, topic: str) -> None:
    answer = produce(client, topic, batches.encode(bytes(1_100_000)))
    assert answer.error_code == Code.MESSAGE_TOO_LARGE


def test_two_batches_for_one_partition_in_one_request_are_refused_with_87(
    client: Client, topic: str
) -> None:
    answer = produce(client, topic, batches.encode(b"a") + batches.encode(b"b"))
    assert answer.error_code == Code.INVALID_RECORD
    assert end_offset(client, topic) == 0


def patched(at: int, format_: str, value: int, *, data: bytes | None = None) -> bytes:
    """Change a field of a batch and make its checksum valid again."""
    good = batches.encode(b"a") if data is None else data
    new = good[:at] + struct.pack(format_, value) + good[at + struct.calcsize(format_) :]
    return new[:17] + struct.pack(">I", crc32c(new[21:])) + new[21:]


def old_format(magic: int) -> bytes:
    """Encode a record as producers sent it before 0.11."""
    time_ms = struct.pack(">q", batches.TIMESTAMP_MS) if magic else b""
    message = bytes([magic, 0]) + time_ms + struct.pack(">ii", -1, 1) + b"a"
    message = struct.pack(">I", zlib.crc32(message)) + message
    return struct.pack(">qi", 0, len(message)) + message


GOOD = batches.encode(b"a")
BAD = {
    "nothing": (b"", Code.INVALID_RECORD, -1),
    "a few bytes": (b"abc", Code.INVALID_RECORD, -1),
    "zeros": (bytes(100), Code.CORRUPT_MESSAGE, -1),
    "cut short": (GOOD[:-1], Code.INVALID_RECORD, -1),
    "a length of 13": (patched(8, ">i", 13), Code.CORRUPT_MESSAGE, -1),
    "a length of 48": (patched(8, ">i", 48), Code.CORRUPT_MESSAGE, -1),
    "a negative length": (patched(8, ">i", -1), Code.CORRUPT_MESSAGE, -1),
    "a length beyond the end": (patched(8, ">i", len(GOOD)), Code.INVALID_RECORD, -1),
    "format 0": (old_format(0), Code.INVALID_RECORD, -1),
    "format 1": (old_format(1), Code.INVALID_RECORD, -1),
    "format 3": (patched(16, ">b", 3), Code.CORRUPT_MESSAGE, -1),
    "two batches": (GOOD + GOOD, Code.INVALID_RECORD, -1),
    "zeros behind": (GOOD + bytes(20), Code.CORRUPT_MESSAGE, -1),
    "a base offset": (patched(0, ">q", 5), Code.INVALID_RECORD, 0),
    "fewer records than offsets": (patched(23, ">i", 1), Code.INVALID_RECORD, 0),
    "more records than offsets": (patched(57, ">i", 2), Code.INVALID_RECORD, 0),
    "a negative number of records": (patched(57, ">i", -1), Code.INVALID_RECORD, 0),
    "no offsets": (patched(23, ">i", -1), Code.INVALID_RECORD, 0),
    "a control batch": (patched(21, ">h", 0x20), Code.INVALID_RECORD, 0),
    "no sequence": (batches.encode(b"a", producer_id=7, epoch=0), Code.INVALID_RECORD, 0),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_batch_is_refused_and_leaves_no_trace(
    client: Client, topic: str, what: str
) -> None:
    data, code, start_offset = BAD[what]
    answer = produce(client, topic, data)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.log_start_offset == start_offset
    assert answer.record_errors == ()
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("behind", [b"a", bytes(11), GOOD[:-1]])
def test_what_follows_a_batch_and_is_none_is_dropped(
    client: Client, topic: str, behind: bytes
) -> None:
    assert produce(client, topic, GOOD + behind).error_code == Code.NONE
    assert batches.values(fetch(client, topic, 0).records) == [b"a"]


@pytest.mark.parametrize("version", [3, 6, 7])
def test_zstd_came_with_version_7(client: Client, topic: str, version: int) -> None:
    body = bytes(compress_records(CompressionType.ZSTD, GOOD[61:]))
    data = patched(21, ">h", CompressionType.ZSTD, data=GOOD[:61] + body)
    data = patched(8, ">i", len(data) - 12, data=data)
    expected = Code.NONE if version >= 7 else Code.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, topic, data, version=version).error_code == expected


def test_a_timestamp_in_the_future_is_refused_with_the_record_that_has_it(
    client: Client, topic: str
) -> None:
    now_ms = batches.TIMESTAMP_MS  # or some minutes ago
    times = [now_ms, now_ms + 40_000_000, now_ms, now_ms + 50_000_000]
    answer = produce(client, topic, batches.encode(b"a", b"b", b"c", b"d", timestamps_ms=times))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message
    assert answer.log_start_offset == 0


def test_a_timestamp_too_far_in_the_past_is_refused_with_the_record_that_has_it(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("recent")
    create_topic(client, name, configs={"message.timestamp.before.max.ms": "3600000"})
    now_ms = batches.TIMESTAMP_MS
    times = [now_ms, now_ms - 4_000_000, -1, 5]
    answer = produce(client, name, batches.encode(b"a", b"b", b"c", b"d", timestamps_ms=times))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    answer = produce(client, name, batches.encode(b"a", b"b", timestamps_ms=[now_ms, -1]))
    assert answer.error_code == Code.NONE


def test_a_producer_does_not_say_that_its_times_are_the_log_s(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    data = patched(21, ">h", 8)
    assert produce(client, topic, data).error_code == Code.NONE
    (batch,) = batches.decode(fetch(client, topic, 0).records)
    assert not batch.attributes & 8
    name = unique("arrival")
    create_topic(client, name, configs={"message.timestamp.type": "LogAppendTime"})
    answer = produce(client, name, data)
    assert answer.error_code == Code.INVALID_TIMESTAMP


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("compacted")
    create_topic(client, name, configs={"cleanup.policy": "compact"})
    keyed: tuple[bytes, bytes] = (b"key", b"value")
    answer = produce(client, name, batches.encode(keyed, b"a", keyed, b"b"))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_RECORD, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message
    assert produce(client, name, batches.encode(keyed, (b"", b""))).error_code == Code.NONE


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("count", [1, 3])
def test_a_compacted_topic_refuses_a_batch_with_another_number_of_records_than_it_states(
    client: Client, unique: Callable[[str], str], count: int, compression: CompressionType
) -> None:
    name = unique("compacted")
    create_topic(client, name, configs={"cleanup.policy": "compact"})
    data = batches.encode((b"a", b"1"), (b"b", b"2"))
    if compression:
        body = bytes(compress_records(compression, data[61:]))
        data = patched(21, ">h", compression, data=data[:61] + body)
        data = patched(8, ">i", len(data) - 12, data=data)
    data = patched(23, ">i", count - 1, data=patched(57, ">i", count, data=data))
    answer = produce(client, name, data)
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_RECORD, -1)
    assert end_offset(client, name) == 0
