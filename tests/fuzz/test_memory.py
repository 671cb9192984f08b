"""Test that small requests that ask for much room or time take a bounded amount."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.log.compression import CompressionType
from coordinator.wire.array_limits import ELEMENTS_MAX
from tests.fuzz.batches import with_records
from tests.fuzz.requests import COMPACTED, about_a_batch
from tests.fuzz.victim import Victim

MB = 1_000_000
SECONDS_MAX = 3.0  # of a request as large as can be, on a machine that others use too


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with Victim(tmp_path) as victim:
        yield victim


def head(api_key: int, version: int) -> bytes:
    """Return the header of a request whose version isn't flexible, without a client id."""
    return api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"


def array(count: int, element: bytes) -> bytes:
    return count.to_bytes(4, "big") + element * count


TOPIC = b"\0\x01x"
TOO_MANY = {
    "names": head(3, 1) + array(5 * ELEMENTS_MAX, b"\0\0"),
    "partitions of one topic": head(2, 1)
    + b"\xff\xff\xff\xff"
    + array(1, TOPIC + array(2 * ELEMENTS_MAX, bytes(12))),
    "numbers": head(9, 1) + TOPIC + array(1, TOPIC + array(4 * ELEMENTS_MAX, bytes(4))),
    "partitions of many topics": head(9, 1) + TOPIC + array(2_000, TOPIC + array(100, bytes(4))),
}


@pytest.mark.parametrize("frame", TOO_MANY.values(), ids=list(TOO_MANY))
def test_an_array_beyond_the_limit_is_refused_before_room_is_made(
    victim: Victim, frame: bytes
) -> None:
    assert taken_mb(victim, frame) < 1
    assert victim.refused == 1


def test_the_largest_request_that_is_read_takes_a_bounded_time_and_room(victim: Victim) -> None:
    victim.seconds_max = 60 * SECONDS_MAX  # tracing takes its time
    frame = head(3, 1) + array(ELEMENTS_MAX, b"\0\0")
    assert taken_mb(victim, frame) < 200
    begin = time.process_time()
    victim.feed(frame)
    assert time.process_time() - begin < SECONDS_MAX


@pytest.mark.parametrize(
    "codec", [each for each in CompressionType if each is not CompressionType.NONE]
)
def test_a_bomb_is_not_unpacked_beyond_the_limit(victim: Victim, codec: CompressionType) -> None:
    victim.seconds_max = 60 * SECONDS_MAX
    # Snappy's blocks say how long they get, so a bomb of it is as large as what comes out.
    size = {CompressionType.SNAPPY: 15 * MB}.get(codec, 200 * MB)
    bomb = with_records(codec, bytes(size))
    assert len(bomb) < MB
    taken = [taken_mb(victim, frame) for frame in about_a_batch(COMPACTED, bomb)]
    assert 10 < max(taken) < 150, taken


def taken_mb(victim: Victim, frame: bytes) -> float:
    """Return the peak of the broker's Python memory for this request, in MB."""
    tracemalloc.start()
    try:
        victim.feed(frame)
        return tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()
