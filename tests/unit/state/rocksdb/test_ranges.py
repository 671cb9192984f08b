"""Test that ranges are in order both ways, and don't block the directory's next owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from state.errors import StateError
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RocksDisk]:
    disk = RocksDisk(tmp_path / "db")
    disk.write_changes(
        {key: key.upper() for key in (b"b", b"d", b"f", b"h")}, StoreCheckpoint(4, "topic")
    )
    yield disk
    disk.close()


@pytest.mark.parametrize(
    ("first", "last", "keys"),
    [
        (None, None, b"bdfh"),
        (b"d", None, b"dfh"),
        (None, b"f", b"bd"),
        (b"c", b"g", b"df"),
        (b"d", b"d", b""),
        (b"g", b"c", b""),
        (b"i", None, b""),
        (None, b"a", b""),
    ],
)
def test_a_range_has_its_first_and_not_its_last(
    disk: RocksDisk, first: bytes | None, last: bytes | None, keys: bytes
) -> None:
    expected = [(bytes([key]), bytes([key]).upper()) for key in keys]
    assert list(disk.range(first, last)) == expected
    assert list(disk.range(first, last, reverse=True)) == expected[::-1]


def test_an_iterator_sees_the_disk_as_it_was_at_its_first_step(disk: RocksDisk) -> None:
    entries = disk.range(None, None)
    assert next(entries) == (b"b", b"B")
    disk.write_changes({b"c": b"new", b"d": None}, StoreCheckpoint(5, "topic"))
    assert [key for key, _ in entries] == [b"d", b"f", b"h"]


def test_a_store_with_a_half_used_iterator_is_closed_and_reopened_at_once(
    disk: RocksDisk, tmp_path: Path
) -> None:
    half_used = [disk.range(None, None), disk.range(None, b"h", reverse=True)]
    for entries in half_used:
        next(entries)
    not_begun = disk.range(None, None)
    disk.close()
    reopened = RocksDisk(tmp_path / "db")
    assert reopened.get(b"b") == b"B"
    for entries in (*half_used, not_begun):
        with pytest.raises(StateError, match=r"store 'db' in .* is closed"):
            next(entries)
    reopened.close()


def test_an_iterator_that_nobody_uses_any_more_is_let_go(disk: RocksDisk) -> None:
    for _ in range(3):
        next(disk.range(None, None))
    list(disk.range(None, None))
    assert not disk._cursors
