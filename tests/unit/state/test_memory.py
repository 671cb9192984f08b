"""Test that the in-memory disk keeps keys in order by inserting into sorted pieces."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from tests.unit.properties import examples

KEYS = st.binary(max_size=2)
BOUNDS = st.none() | KEYS
WRITES = st.lists(st.tuples(KEYS, st.none() | st.just(b"v")), max_size=30)


def small_pieces() -> MemoryDisk:
    """Return a disk whose keys lie in many pieces."""
    return MemoryDisk(piece_keys_max=4)


@examples(200)
@given(batches=st.lists(WRITES, max_size=6), first=BOUNDS, last=BOUNDS, cut=st.tuples(KEYS, KEYS))
def test_ranges_are_those_of_a_sorted_dict(
    batches: list[list[tuple[bytes, bytes | None]]],
    first: bytes | None,
    last: bytes | None,
    cut: tuple[bytes, bytes],
) -> None:
    disk, model = small_pieces(), dict[bytes, bytes]()
    for batch in batches:
        disk.load_changes(batch, StoreCheckpoint(1, "t"))
        for key, value in batch:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        inside = [
            (key, model[key])
            for key in sorted(model)
            if (first is None or key >= first) and (last is None or key < last)
        ]
        assert list(disk.range(first, last)) == inside
        assert list(disk.range(first, last, reverse=True)) == inside[::-1]
    disk.delete_range(*cut)
    left = [key for key in sorted(model) if not cut[0] <= key < cut[1]]
    assert [key for key, _ in disk.range(None, None)] == left


@pytest.mark.parametrize("reverse", [False, True])
def test_writing_while_a_range_is_read_neither_breaks_nor_repeats_it(reverse: bool) -> None:
    chance = random.Random(7)
    disk = small_pieces()
    keys = [b"%03d" % number for number in range(0, 200, 2)]
    disk.load_changes([(key, b"v") for key in keys], StoreCheckpoint(1, "t"))
    seen = []
    for key, _ in disk.range(None, None, reverse=reverse):
        seen.append(key)
        fresh = b"%03d" % chance.randrange(1, 200, 2)
        disk.load_changes([(fresh, b"v"), (chance.choice(keys), None)], StoreCheckpoint(1, "t"))
    assert seen == sorted(set(seen), reverse=reverse)
    kept = {key for key, _ in disk.range(None, None)} & set(keys)
    assert kept <= set(seen)


def test_a_first_range_that_another_thread_asks_for_while_records_are_written_misses_none() -> None:
    disk = small_pieces()
    keys = [b"%03d" % number for number in range(20)]
    reader = threading.Thread(target=lambda: list(disk.range(None, None)))

    def changes() -> Iterator[tuple[bytes, bytes | None]]:
        for number, key in enumerate(keys):
            if number == 10:
                reader.start()
                reader.join(0.05)  # The reader ends at once, or when all is written.
            yield key, b"v"

    disk.load_changes(changes(), StoreCheckpoint(1, "t"))
    reader.join()
    assert [key for key, _ in disk.range(None, None)] == keys
