from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.log.batch import copy_with_offset, iterate_batches, parse_header
from coordinator.log.batch_encoding import encode_marker
from coordinator.log.varint import VARINT, read_varint
from tests.own_batches import encode_batch

RECORDS: list[tuple[bytes | None, bytes | None]] = [
    (b"k", b"v"),
    (None, b"x" * 300),
    (b"", None),
]


def batch(producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1) -> bytes:
    return encode_batch(
        RECORDS,
        timestamp_ms=5,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def patched(data: bytes, at: int, layout: str, value: int) -> bytes:
    """Return a batch with one field changed and the checksum made valid again."""
    out = bytearray(data)
    struct.pack_into(layout, out, at, value)
    struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


@given(st.integers(-(2**63), 2**63 - 1))
@example(1_023)  # the last one that is there ready-made
@example(1_024)
def test_a_varint_reads_back_as_it_was_written(value: int) -> None:
    out = VARINT[value]
    assert read_varint(out, 0) == (value, len(out))


def test_a_batch_reads_back_as_it_was_written() -> None:
    [found] = iterate_batches(batch(producer_id=7, producer_epoch=2, base_sequence=11))
    assert [(r.key, r.value) for r in found.iterate_records()] == RECORDS
    assert [(r.offset, r.timestamp_ms) for r in found.iterate_records()] == [(0, 5), (1, 5), (2, 5)]
    assert (found.producer_id, found.producer_epoch) == (7, 2)
    assert (found.base_sequence, found.last_sequence) == (11, 13)
    assert not found.is_transactional
    assert found.is_intact()


def test_sequences_wrap_to_0_after_the_largest_int32() -> None:
    [found] = iterate_batches(batch(producer_id=7, producer_epoch=2, base_sequence=2**31 - 2))
    assert found.last_sequence == 0


def test_a_marker_says_how_the_transaction_ended_and_who_says_so() -> None:
    for committed in (True, False):
        data = encode_marker(7, 2, committed=committed, coordinator_epoch=4, timestamp_ms=9)
        [found] = iterate_batches(data)
        assert found.is_control
        assert found.is_transactional
        assert found.base_sequence == -1
        assert found.decode_marker() == (committed, 4)


def test_a_new_offset_leaves_the_checksum_valid() -> None:
    found = parse_header(copy_with_offset(batch(), 12_345, None))
    assert found.is_intact()
    assert [r.offset for r in found.iterate_records()] == [12_345, 12_346, 12_347]


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    found = parse_header(copy_with_offset(batch(), 3, 99))
    assert found.is_intact()
    assert found.max_timestamp_ms == 99
    assert {r.timestamp_ms for r in found.iterate_records()} == {99}


def test_a_piece_of_a_batch_at_the_end_is_left_out() -> None:
    data = batch()
    for cut in range(len(data)):
        assert len(list(iterate_batches(data + data[:cut]))) == 1


def test_records_that_are_not_compressed_as_the_batch_says_are_not_guessed_at() -> None:
    [found] = iterate_batches(patched(batch(), 21, ">h", 1))
    with pytest.raises(ValueError, match="not gzip"):
        list(found.iterate_records())


@pytest.mark.parametrize(
    "rest",
    [
        b"\x00" * 50,  # records of no bytes, which would never come to an end
        b"\x01" * 50,  # records of -1 byte
        b"\xfe\xff\xff\xff\x0f" + bytes(50),
        b"\x0c\0\0\0\x01\x01\xfe\xff\xff\xff\x0f" + bytes(50),  # 2 billion headers
        b"\xff" * 100_000,
    ],
)
def test_records_that_are_none_come_to_an_end(rest: bytes) -> None:
    data = patched(batch(), 57, ">i", 2**31 - 1)[:61] + rest
    [found] = iterate_batches(patched(data, 8, ">i", len(data) - 12))
    with pytest.raises((ValueError, IndexError)):
        list(found.iterate_records())


@pytest.mark.parametrize("length", [48, 0, -12, -13, -(2**31)])
def test_a_batch_that_is_shorter_than_its_header_is_none(length: int) -> None:
    with pytest.raises(ValueError, match=f"a batch of {length + 12} bytes at 0"):
        list(iterate_batches(patched(batch(), 8, ">i", length)))


@pytest.mark.parametrize("records", [[(b"", b"")], [(None, None)], [(b"\0\0\0\1", b"\0")]])
def test_a_marker_that_says_nothing_is_refused(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    found = parse_header(encode_batch(records, timestamp_ms=1))
    with pytest.raises(ValueError, match="the marker at offset 0 is damaged"):
        found.decode_marker()
    with pytest.raises(ValueError, match="the marker at offset 0 is damaged"):
        found._replace(record_count=0).decode_marker()
