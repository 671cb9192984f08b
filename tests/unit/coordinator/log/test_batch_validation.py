from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import Code, Refused
from coordinator.log.batch import HEADER_BYTES
from coordinator.log.batch_validation import (
    RejectedRecords,
    parse_single_batch,
    validate_produced_batch,
)
from coordinator.log.compression import CompressionType, compress_records
from coordinator.log.settings import LogSettings
from tests.own_batches import encode_batch

Pairs = list[tuple[bytes | None, bytes | None]]
SETTINGS = LogSettings()
COMPACTED = LogSettings(is_compacted=True)


def batch(pairs: Pairs | None = None) -> bytes:
    return encode_batch(pairs or [(b"a", b"1"), (None, b"2"), (b"c", None)], timestamp_ms=1_000)


def sealed(data: bytes) -> bytes:
    """Return a batch with the checksum of its present content."""
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


def patched(at: int, format_: str, value: int) -> Callable[[bytes], bytes]:
    size = struct.calcsize(format_)
    return lambda data: sealed(data[:at] + struct.pack(format_, value) + data[at + size :])


def length(value: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:8] + struct.pack(">i", value) + data[12:]


def magic(value: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:16] + struct.pack(">b", value) + data[17:]


def code_of(data: bytes | None, settings: LogSettings = SETTINGS) -> Code:
    try:
        validate_produced_batch(parse_single_batch(data), settings)
    except Refused as refused:
        return refused.code
    return Code.NONE


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda data: data, Code.NONE),
        (lambda data: b"", Code.INVALID_RECORD),
        (lambda data: data[:11], Code.INVALID_RECORD),
        (lambda data: data[:16], Code.INVALID_RECORD),
        (lambda data: data[:60], Code.INVALID_RECORD),
        (lambda data: data[:-1], Code.INVALID_RECORD),
        (lambda data: data[:-1] + b"!", Code.CORRUPT_MESSAGE),
        (length(-1), Code.CORRUPT_MESSAGE),
        (length(13), Code.CORRUPT_MESSAGE),
        (length(48), Code.CORRUPT_MESSAGE),
        (length(2**31 - 1), Code.INVALID_RECORD),
        (magic(0), Code.INVALID_RECORD),
        (magic(1), Code.INVALID_RECORD),
        (magic(3), Code.CORRUPT_MESSAGE),
        (magic(-1), Code.CORRUPT_MESSAGE),
        (lambda data: data + data, Code.INVALID_RECORD),
        (lambda data: data + data[:-1], Code.NONE),
        (lambda data: data + b"abc", Code.NONE),
        (lambda data: data + bytes(12), Code.CORRUPT_MESSAGE),
        (lambda data: data[:7] + b"\1" + data[8:], Code.INVALID_RECORD),
        (patched(57, ">i", 4), Code.INVALID_RECORD),
        (patched(57, ">i", 0), Code.INVALID_RECORD),
        (patched(23, ">i", -1), Code.INVALID_RECORD),
        (patched(21, ">h", 0x20), Code.INVALID_RECORD),
        (patched(21, ">h", 0x10), Code.INVALID_RECORD),
        (patched(21, ">h", 0x05), Code.INVALID_RECORD),
        (patched(43, ">q", 7), Code.INVALID_RECORD),
    ],
    ids=[
        "as it should be",
        "nothing",
        "no length",
        "no magic",
        "less than a header",
        "cut short",
        "a changed byte",
        "a negative length",
        "a length below any format's",
        "a length below a header's",
        "a length beyond the end",
        "magic 0",
        "magic 1",
        "magic 3",
        "magic -1",
        "two batches",
        "a piece of a second batch",
        "a few bytes behind it",
        "zeros behind it",
        "a base offset",
        "more records than offsets",
        "no records",
        "a negative offset delta",
        "a control batch",
        "transactional without a producer",
        "an unknown compression",
        "a producer without a sequence",
    ],
)
def test_what_a_client_may_produce(damage: Callable[[bytes], bytes], code: Code) -> None:
    assert code_of(damage(batch())) == code


def test_what_follows_the_batch_is_dropped() -> None:
    assert parse_single_batch(batch() + b"abc").data == batch()


def test_a_batch_larger_than_the_topic_allows_is_refused() -> None:
    data = batch()
    assert code_of(data, LogSettings(max_message_bytes=len(data))) == Code.NONE
    assert code_of(data, LogSettings(max_message_bytes=len(data) - 1)) == Code.MESSAGE_TOO_LARGE


def compressed(pairs: Pairs, codec: CompressionType) -> bytes:
    data = batch(pairs)
    body = bytes(compress_records(codec, data[HEADER_BYTES:]))
    head = data[:21] + struct.pack(">h", codec) + data[23:HEADER_BYTES]
    return sealed(length(len(head) + len(body) - 12)(head + body))


keys = st.one_of(st.none(), st.binary(max_size=3), st.binary(min_size=60, max_size=70))


@given(
    st.lists(st.tuples(keys, st.binary(max_size=130)), min_size=1, max_size=80),
    st.sampled_from(CompressionType),
)
def test_a_compacted_topic_takes_records_with_keys_only_and_says_which_have_none(
    pairs: list[tuple[bytes | None, bytes]], codec: CompressionType
) -> None:
    data = compressed([(key, value) for key, value in pairs], codec)
    assert code_of(data) == Code.NONE
    keyless = [index for index, (key, _) in enumerate(pairs) if key is None]
    if not keyless:
        assert code_of(data, COMPACTED) == Code.NONE
        return
    with pytest.raises(RejectedRecords) as refused:
        validate_produced_batch(parse_single_batch(data), COMPACTED)
    assert refused.value.code == Code.INVALID_RECORD
    assert [index for index, _ in refused.value.errors] == keyless


@given(st.binary(max_size=60), st.integers(0, 4))
def test_what_is_no_record_gets_into_no_compacted_topic_but_for_one_that_looks_like_it(
    body: bytes, codec: int
) -> None:
    head = batch()[:HEADER_BYTES]
    data = sealed(length(len(head) + len(body) - 12)(patched(21, ">h", codec)(head + body)))
    assert code_of(data, COMPACTED) in (Code.INVALID_RECORD, Code.NONE)
