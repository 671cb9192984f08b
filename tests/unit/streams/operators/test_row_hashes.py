"""Test when the rows of a foreign-key join are hashed together, before they are processed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams.common.murmur3 import murmur3_hash128
from streams.operators import row_hashes
from streams.operators.row_hashes import RowHasher

FIRST, SECOND = {b"1", b"2"}, {b"3", b"4"}


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> list[set[bytes]]:
    """Return a list to which the rows are added that are hashed together."""
    rows: list[set[bytes]] = []
    monkeypatch.setattr(row_hashes, "remember_hashes", rows.append)
    return rows


@pytest.mark.parametrize("serialize", [str.encode, lambda row: b"row " + row.encode()])
def test_a_row_has_the_hash_of_the_bytes_that_are_written(
    serialize: Callable[[str], bytes],
) -> None:
    hasher = RowHasher(serialize)
    for _ in range(3):
        hasher.hash_values_ahead({b"%d" % i for i in range(10)})
        for i in range(10):
            assert hasher.hash_row(str(i)) == murmur3_hash128(serialize(str(i)))


def test_values_are_hashed_together_once_a_row_was_written_as_it_was_read(
    remembered: list[set[bytes]],
) -> None:
    hasher = RowHasher(str.encode)
    hasher.hash_values_ahead(FIRST)
    assert remembered == []
    hasher.hash_row("2")
    hasher.hash_values_ahead(SECOND)
    assert remembered == [SECOND]


def test_values_that_are_written_with_other_bytes_are_not_hashed(
    remembered: list[set[bytes]],
) -> None:
    hasher = RowHasher(lambda row: b"row " + row.encode())
    for _ in range(3):
        hasher.hash_values_ahead(FIRST)
        hasher.hash_row("2")
    assert remembered == []


def test_values_after_those_that_no_row_came_of_are_not_hashed(
    remembered: list[set[bytes]],
) -> None:
    hasher = RowHasher(str.encode)
    hasher.hash_values_ahead(FIRST)
    hasher.hash_row("2")
    hasher.hash_values_ahead(SECOND)
    hasher.hash_values_ahead(FIRST)
    assert remembered == [SECOND]


def test_bytes_that_cannot_be_hashed_stop_nothing_later() -> None:
    serialize: Any = bytearray
    hasher = RowHasher(serialize)
    hasher.hash_values_ahead(FIRST)
    with pytest.raises(TypeError):
        hasher.hash_row(b"2")
    hasher.hash_values_ahead(SECOND)


def test_records_without_values_say_nothing_of_those_that_follow(
    remembered: list[set[bytes]],
) -> None:
    hasher = RowHasher(str.encode)
    hasher.hash_values_ahead(FIRST)
    hasher.hash_row("2")
    hasher.hash_values_ahead(set())
    hasher.hash_values_ahead(SECOND)
    assert remembered == [SECOND]
