"""Test how long results of a function are remembered."""

from __future__ import annotations

from streams.common.bounded_cache import RecentResults

_BYTES_MAX = 100_000
_RESULT = b"result"


def add_all(recent: RecentResults, rows: list[bytes]) -> None:
    for row in rows:
        recent.add_result(row, row[::-1])


def test_recent_results_are_found() -> None:
    recent = RecentResults(_BYTES_MAX)
    rows = [b"row %d" % i for i in range(_BYTES_MAX // 250)]
    assert [recent.find_result(row) for row in rows] == [None] * len(rows)
    add_all(recent, rows)
    assert [recent.find_result(row) for row in rows] == [row[::-1] for row in rows]


def test_the_bytes_of_rows_count_towards_the_limit() -> None:
    recent = RecentResults(_BYTES_MAX)
    rows = [b"%d" % i * 1_000 for i in range(_BYTES_MAX // 500)]
    add_all(recent, rows)
    found = [row for row in rows if recent.find_result(row) is not None]
    assert _BYTES_MAX // 4 < sum(map(len, found)) < _BYTES_MAX


def test_the_oldest_results_are_dropped_first() -> None:
    recent = RecentResults(_BYTES_MAX)
    rows = [b"%d" % i * 1_000 for i in range(_BYTES_MAX // 500)]
    add_all(recent, rows)
    found = [row for row in rows if recent.find_result(row) is not None]
    assert found == rows[-len(found) :]
    assert 0 < len(found) < len(rows)


def test_data_larger_than_a_generation_displaces_nothing() -> None:
    recent = RecentResults(_BYTES_MAX)
    recent.add_result(b"row", _RESULT)
    for i in range(3):
        large = b"%d" % i * _BYTES_MAX
        recent.add_result(large, _RESULT)
        assert recent.find_result(large) is None
    assert recent.find_result(b"row") == _RESULT
