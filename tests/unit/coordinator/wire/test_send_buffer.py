from __future__ import annotations

from itertools import pairwise

import pytest

from coordinator.wire.send_buffer import CHUNK_BYTES, SendBuffer, join_small_pieces


class FakeSlice:
    """Stands in for a slice of a file: makes bytes on reading and keeps the requested ranges."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.reads: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self._size

    def read(self, at: int, count: int) -> bytes:
        self.reads.append((at, count))
        return b"s" * count


def test_pieces_are_joined_between_slices() -> None:
    one, two = FakeSlice(1), FakeSlice(1)
    assert join_small_pieces([b"a", b"b", one, two, b"c", b"", b"d"]) == [
        b"ab",
        one,
        b"",
        two,
        b"cd",
    ]


@pytest.mark.parametrize("size", [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 1_000_000])
def test_a_slice_is_read_piece_by_piece_and_no_sooner_than_it_is_taken(size: int) -> None:
    data = FakeSlice(size)
    outgoing = SendBuffer()
    outgoing.add_pieces([b"head", data, b"tail"])
    assert outgoing.pop_next_chunk() == b"head"
    assert data.reads == []
    taken = b""
    while len(taken) < size:
        piece = outgoing.pop_next_chunk()
        assert 0 < len(piece) <= CHUNK_BYTES
        taken += piece
    assert taken == b"s" * size
    assert all(one[0] + one[1] == other[0] for one, other in pairwise(data.reads))
    assert outgoing.pop_next_chunk() == b"tail"
    assert not outgoing


def test_what_is_cleared_is_not_sent() -> None:
    outgoing = SendBuffer()
    outgoing.add_pieces([FakeSlice(CHUNK_BYTES + 1), b"tail"])
    outgoing.pop_next_chunk()
    outgoing.drop_pieces()
    assert not outgoing
    outgoing.add_pieces([FakeSlice(1)])
    assert outgoing.pop_next_chunk() == b"s"
