from __future__ import annotations

from itertools import pairwise

import pytest

from coordinator.wire.outgoing import CHUNK_BYTES, Outgoing, joined


class FakeSlice:
    """Bytes that are made when they are read; remembers what was asked for."""

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
    assert joined([b"a", b"b", one, two, b"c", b"", b"d"]) == [b"ab", one, b"", two, b"cd"]


@pytest.mark.parametrize("size", [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 1_000_000])
def test_a_slice_is_read_piece_by_piece_and_no_sooner_than_it_is_taken(size: int) -> None:
    data = FakeSlice(size)
    outgoing = Outgoing()
    outgoing.add([b"head", data, b"tail"])
    assert outgoing.take() == b"head"
    assert data.reads == []
    taken = b""
    while len(taken) < size:
        piece = outgoing.take()
        assert 0 < len(piece) <= CHUNK_BYTES
        taken += piece
    assert taken == b"s" * size
    assert all(one[0] + one[1] == other[0] for one, other in pairwise(data.reads))
    assert outgoing.take() == b"tail"
    assert not outgoing


def test_what_is_cleared_is_not_sent() -> None:
    outgoing = Outgoing()
    outgoing.add([FakeSlice(CHUNK_BYTES + 1), b"tail"])
    outgoing.take()
    outgoing.clear()
    assert not outgoing
    outgoing.add([FakeSlice(1)])
    assert outgoing.take() == b"s"
