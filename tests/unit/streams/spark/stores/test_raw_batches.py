"""Test that batch headers tell what is left of a log, with logs that are made up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import StreamsError
from streams.spark.stores.raw_batches import BatchHeader, LogScan, parse_batch_headers
from tests.conformance.batches import encode

EPOCH = 4


@dataclass
class Log:
    """Represents a log of batches in segments, with three bytes a record, up to offset `end`."""

    segments: list[list[BatchHeader]]
    end: int

    def fetch(self, position: int, bytes_max: int, *, cut_off: bool) -> bytes:
        """Return bytes as a broker does: of one segment, and at least one batch.

        Kafka cuts the last batch off at the limit; `cut_off` chooses whether this log does.
        """
        for segment in self.segments:
            data = b""
            for each in segment:
                if each.last_offset < position:
                    continue
                batch = written(each)
                if data and len(data) + len(batch) > bytes_max:
                    return data + batch[: bytes_max - len(data)] if cut_off else data
                data += batch
            if data:
                return data
        return b""


def written(header: BatchHeader) -> bytes:
    """Encode a batch of which some records were removed."""
    pairs = [(b"k", b"v")] * max(header.record_count, 1)
    data = bytearray(encode(*pairs))
    data[0:8] = header.base_offset.to_bytes(8, "big")
    data[12:16] = header.leader_epoch.to_bytes(4, "big")
    data[23:27] = (header.last_offset - header.base_offset).to_bytes(4, "big")
    data[57:61] = header.record_count.to_bytes(4, "big")
    return bytes(data)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    segments: list[list[BatchHeader]] = []
    offset = 0
    for _ in range(draw(st.integers(1, 4))):
        segment = []
        for _ in range(draw(st.integers(1, 5))):
            width, records = draw(st.integers(1, 4)), draw(st.integers(0, 4))
            kind = draw(st.sampled_from(["whole", "whole", "whole", "thinned", "gone"]))
            epoch = draw(st.sampled_from([EPOCH] * 9 + [EPOCH - 1]))
            last = offset + width - 1
            if kind != "gone":
                left = width if kind == "whole" else min(records, width)
                segment.append(BatchHeader(offset, last, left, epoch))
            offset += width
        if segment:
            segments.append(segment)
    return Log(segments, offset)


def scanned(log: Log, first: int, until: int, bytes_max: int, *, cut_off: bool) -> LogScan:
    scan = LogScan(first, until, EPOCH)
    for _ in range(200):
        if scan.is_done:
            return scan
        scan.read_batches(log.fetch(scan.fetch_offset, bytes_max, cut_off=cut_off))
    raise AssertionError("it goes on for ever")


@given(logs(), st.integers(1, 400), st.booleans())
def test_what_is_gone_is_counted_whatever_the_size_of_an_answer(
    log: Log, bytes_max: int, cut_off: bool
) -> None:
    there = sum(each.record_count for segment in log.segments for each in segment)
    scan = scanned(log, 0, log.end, bytes_max, cut_off=cut_off)
    assert scan.removed_count == log.end - there


@given(logs(), st.data(), st.integers(1, 400), st.booleans())
def test_no_offset_that_is_gone_is_overlooked_in_a_part_of_the_log(
    log: Log, data: st.DataObject, bytes_max: int, cut_off: bool
) -> None:
    first = data.draw(st.integers(0, log.end - 1))
    until = data.draw(st.integers(first + 1, log.end))
    scan = scanned(log, first, until, bytes_max, cut_off=cut_off)
    batches = [each for segment in log.segments for each in segment]
    covered = {o for each in batches for o in range(each.base_offset, each.last_offset + 1)}
    thinned = [
        each for each in batches if each.last_offset - each.base_offset + 1 > each.record_count
    ]
    touched = any(each.last_offset >= first and each.base_offset < until for each in thinned)
    gone = any(offset not in covered for offset in range(first, until))
    assert (scan.removed_count > 0) == (touched or gone)
    assert scan.removed_count <= until - first


@given(logs(), st.data(), st.integers(1, 400), st.booleans())
def test_what_is_said_to_be_unbroken_is_in_the_last_segment_and_whole(
    log: Log, data: st.DataObject, bytes_max: int, cut_off: bool
) -> None:
    first = data.draw(st.integers(0, log.end))
    scan = scanned(log, first, log.end, bytes_max, cut_off=cut_off)
    found = scan.last_segment_offset
    assert first <= found
    if found >= log.end:
        return
    (segment,) = [each for each in log.segments if each[-1].last_offset >= found]
    ours = [each for each in segment if each.last_offset >= found]
    assert segment is log.segments[-1]
    assert ours[0].base_offset <= found
    assert ours[-1].last_offset == log.end - 1
    assert all(each.last_offset - each.base_offset + 1 == each.record_count for each in ours)
    assert all(one.last_offset + 1 == other.base_offset for one, other in pairwise(ours))
    assert {each.leader_epoch for each in ours} == {EPOCH}


def test_a_whole_last_segment_is_unbroken_though_it_takes_many_fetches() -> None:
    segment = [BatchHeader(at, at + 1, 2, EPOCH) for at in range(10, 30, 2)]
    log = Log([[BatchHeader(0, 9, 10, EPOCH)], segment], 30)
    for cut_off in (True, False):
        assert scanned(log, 12, 30, 200, cut_off=cut_off).last_segment_offset == 12
        assert scanned(log, 13, 30, 200, cut_off=cut_off).last_segment_offset == 13
        assert scanned(log, 10, 30, 200, cut_off=cut_off).last_segment_offset == 10
        assert scanned(log, 9, 30, 200, cut_off=cut_off).last_segment_offset == 10
        assert scanned(log, 0, 30, 200, cut_off=cut_off).last_segment_offset == 10
    # Nothing is known of a batch that another leader appended.
    segment[3] = segment[3]._replace(leader_epoch=EPOCH - 1)
    assert scanned(log, 10, 30, 200, cut_off=True).last_segment_offset == 18


def test_nothing_above_is_unbroken() -> None:
    assert LogScan(7, 7, EPOCH).is_done
    assert LogScan(7, 7, EPOCH).last_segment_offset == 7


def test_a_batch_that_was_cut_off_is_not_counted() -> None:
    data = written(BatchHeader(3, 5, 3, EPOCH))
    assert [*parse_batch_headers(data + data[:60])] == [BatchHeader(3, 5, 3, EPOCH)]
    assert [*parse_batch_headers(data + data[:-1])] == [BatchHeader(3, 5, 3, EPOCH)]
    assert [*parse_batch_headers(data[:10])] == []


def test_what_is_no_batch_of_now_is_refused() -> None:
    data = bytearray(written(BatchHeader(3, 5, 3, EPOCH)))
    data[16] = 1
    with pytest.raises(StreamsError, match="offset 3 is a batch of format 1"):
        [*parse_batch_headers(bytes(data))]
