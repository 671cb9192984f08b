"""Test the hash of rows against Kafka Streams, and against Murmur3 computed block by block."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.common import murmur3
from streams.common.murmur3 import murmur3_hash128, remember_hashes
from tests.unit.properties import examples

_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@pytest.mark.parametrize(
    ("size", "expected_hash"),
    [
        (0, "9d2764a018e329428c3cf3b035938518"),
        (1, "a04116a8ea130c2064af89d3eb9703d1"),
        (7, "4f66129d018da90b04dc0e45427cba9c"),
        (8, "489e80bb663f0ff950d3bfa977f3e227"),
        (9, "0e6d06218fba4aedeb28629e17ef4069"),
        (15, "ff192b883fe0a26daf58dabb5ab39f43"),
        (16, "47ac0c84dbdee98c95e813d263dc43e8"),
        (17, "7239c265ac81f716370f845a779bc4b7"),
        (33, "2eccf31fe49dcc9debcdb6b306d5b0fa"),
        (100, "9c75de43635b79171510b327538a6754"),
        (1000, "656ff059ff9d226d049a9921bd1d51c8"),
    ],
)
def test_the_hash_is_that_of_kafka_streams(size: int, expected_hash: str) -> None:
    """Test against hashes that Murmur3.hash128 of Kafka Streams computed."""
    assert murmur3_hash128(bytes((i * 37 + size) % 256 for i in range(size))).hex() == expected_hash


def test_data_of_each_size_is_hashed_as_block_by_block() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for size in (*range(600), *range(1_000, 1_060), 5_000):
        for data in (rng.randbytes(size), b"\xff" * size):
            assert murmur3_hash128(data) == _hash_by_blocks(data), f"{seed=} {size=}"


@pytest.fixture
def hashed_alone(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list to which each row is added that is hashed by itself."""
    rows = []
    compute = murmur3.compute_hash128

    def note_and_compute(data: bytes) -> bytes:
        rows.append(data)
        return compute(data)

    monkeypatch.setattr(murmur3, "compute_hash128", note_and_compute)
    return rows


def test_rows_of_each_size_are_hashed_together(hashed_alone: list[bytes]) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    # Not of one byte: other tests may have left the hashes of nearly all such rows in memory.
    for size in (*range(2, 100), *range(1_000, 1_025)):
        rows = [b"\xff" * size, *(bytes([i]) + rng.randbytes(size - 1) for i in range(9))]
        remember_hashes(rows)
        for row in rows:
            assert murmur3_hash128(row) == _hash_by_blocks(row), f"{seed=} {size=}"
    assert hashed_alone == []


def test_a_large_row_and_those_with_few_of_their_size_are_hashed_alone(
    hashed_alone: list[bytes],
) -> None:
    begin = random.randbytes(8)
    large = [begin + bytes([i]) * 1_017 for i in range(9)]
    few = [begin + bytes([i]) * size for i in range(3) for size in (30, 50)]
    remember_hashes([*large, *few])
    for row in (*large, *few):
        assert murmur3_hash128(row) == _hash_by_blocks(row)
    assert hashed_alone == [*large, *few]


def test_what_is_remembered_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [random.randbytes(100) for _ in range(20)]
    remember_hashes([*rows, *rows])
    monkeypatch.setattr(murmur3, "compute_hashes", None)
    remember_hashes(rows)


rows_of_any_size = st.integers(0, 300).flatmap(lambda size: st.binary(min_size=size, max_size=size))


@examples(50)
@given(st.lists(rows_of_any_size | st.binary(min_size=30, max_size=34), max_size=80))
def test_rows_hashed_together_have_the_hashes_that_each_has_alone(rows: list[bytes]) -> None:
    remember_hashes(rows)
    for row in rows:
        assert murmur3_hash128(row) == _hash_by_blocks(row)
    for row in rows:
        assert murmur3.compute_hashes([row, row], len(row) // 16) == [_hash_by_blocks(row)] * 2


def _hash_by_blocks(data: bytes) -> bytes:
    """Compute the hash one block of 16 bytes after the other, as Kafka Streams does."""
    h1 = h2 = 104729
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        k1, k2 = int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")
        h1 ^= _rotate(k1 * _C1 & _MASK, 31) * _C2 & _MASK
        h2_mixed = h2 ^ _rotate(k2 * _C2 & _MASK, 33) * _C1 & _MASK
        if len(block) == 16:
            h1 = ((_rotate(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
            h2_mixed = ((_rotate(h2_mixed, 31) + h1) * 5 + 0x38495AB5) & _MASK
        h2 = h2_mixed
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _mix(h1), _mix(h2)
    h1 = (h1 + h2) & _MASK
    return h1.to_bytes(8, "big") + ((h2 + h1) & _MASK).to_bytes(8, "big")


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK


def _mix(number: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        number = (number ^ number >> 33) * factor & _MASK
    return number ^ number >> 33
