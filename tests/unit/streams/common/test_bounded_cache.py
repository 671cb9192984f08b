"""Test how long results of a function are remembered."""

from __future__ import annotations

from streams.common.bounded_cache import remember_recent

_BYTES_MAX = 100_000


class Reverser:
    """Reverses bytes, and counts how often."""

    def __init__(self) -> None:
        self.computed_count = 0

    def reverse(self, data: bytes) -> bytes:
        self.computed_count += 1
        return data[::-1]


def test_recent_results_are_not_computed_again() -> None:
    reverser = Reverser()
    find_or_compute = remember_recent(reverser.reverse, _BYTES_MAX)
    rows = [b"row %d" % i for i in range(_BYTES_MAX // 250)]
    for _ in range(3):
        assert [find_or_compute(row) for row in rows] == [row[::-1] for row in rows]
    assert reverser.computed_count == len(rows)


def test_the_bytes_of_rows_count_towards_the_limit() -> None:
    reverser = Reverser()
    find_or_compute = remember_recent(reverser.reverse, _BYTES_MAX)
    rows = [b"%d" % i * 1_000 for i in range(_BYTES_MAX // 500)]
    for _ in range(3):
        for row in rows:
            assert find_or_compute(row) == row[::-1]
    assert reverser.computed_count == 3 * len(rows)


def test_the_oldest_results_are_dropped_first() -> None:
    reverser = Reverser()
    find_or_compute = remember_recent(reverser.reverse, _BYTES_MAX)
    rows = [b"%d" % i * 1_000 for i in range(_BYTES_MAX // 500)]
    for row in rows:
        find_or_compute(row)
    newest = reverser.computed_count
    find_or_compute(rows[-1])
    assert reverser.computed_count == newest
    find_or_compute(rows[0])
    assert reverser.computed_count == newest + 1


def test_data_larger_than_a_generation_displaces_nothing() -> None:
    reverser = Reverser()
    find_or_compute = remember_recent(reverser.reverse, _BYTES_MAX)
    find_or_compute(b"row")
    large = b"l" * _BYTES_MAX
    for _ in range(3):
        assert find_or_compute(large) == large[::-1]
    find_or_compute(b"row")
    assert reverser.computed_count == 1 + 3
