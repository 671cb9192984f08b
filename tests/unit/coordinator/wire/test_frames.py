from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wire.frames import FrameReader, MalformedFrame

FRAMES_MAX = 1_000


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(st.lists(st.binary(max_size=20), max_size=8), st.lists(st.integers(1, 24), min_size=1))
def test_frames_come_out_however_the_bytes_arrive(frames: list[bytes], steps: list[int]) -> None:
    reader = FrameReader(FRAMES_MAX)
    data = framed(*frames)
    found: list[bytes] = []
    at = turn = 0
    while at < len(data):
        step = steps[turn % len(steps)]
        piece = data[at : at + step]
        single_frame = reader.try_read_single_frame(piece)
        found += reader.read_frames(piece) if single_frame is None else [single_frame]
        at, turn = at + step, turn + 1
    assert found == frames


@pytest.mark.parametrize(
    "head", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\x03\xe9", b"GET / HTTP/1.1\r\n"]
)
def test_a_length_that_no_client_sends_is_malformed_at_once(head: bytes) -> None:
    assert FrameReader(FRAMES_MAX).try_read_single_frame(head) is None
    with pytest.raises(MalformedFrame, match="at most 1000"):
        list(FrameReader(FRAMES_MAX).read_frames(head))


def test_the_largest_frame_is_taken_and_so_is_an_empty_one() -> None:
    largest = bytes(FRAMES_MAX)
    assert list(FrameReader(FRAMES_MAX).read_frames(framed(largest, b""))) == [largest, b""]
    assert FrameReader(FRAMES_MAX).try_read_single_frame(framed(largest)) == largest
    assert FrameReader(FRAMES_MAX).try_read_single_frame(framed(largest + b"x")) is None
