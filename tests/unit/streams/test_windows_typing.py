"""What the type checker makes of windows and cogroups: the gate checks this file."""

from __future__ import annotations

from typing import assert_type

from streams import App, LateRecord, Windowed, serdes, windows
from streams.dsl.cogrouped import Cogrouped
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.dsl.windowed import WindowedGroup


def shown(late: LateRecord[str, str]) -> None:
    assert_type(late.key, str)


def test_the_type_checker_infers_windowed_keys() -> None:
    stream = App("a").stream("in", key=serdes.string, value=serdes.string)
    cut = stream.group_by_key().windowed_by(windows.tumbling(10))
    assert_type(cut, WindowedGroup[str, str])
    counts = cut.count(on_late=shown)
    assert_type(counts, Table[Windowed[str], int])
    assert_type(
        counts.to_stream().map(lambda window, count: (window.key, window.start_ms + count)),
        Stream[str, int],
    )
    sessions = stream.group_by_key().windowed_by(windows.session(10))
    lengths = sessions.aggregate(
        lambda: 0.0,
        lambda key, value, so_far: so_far + len(value),
        merger=lambda key, one, other: one + other,
        value=serdes.float64,
    )
    assert_type(lengths, Table[Windowed[str], float])


def add(key: str, value: str, so_far: int) -> int:
    return so_far + len(value)


def test_the_type_checker_infers_what_groups_become_together() -> None:
    app = App("a")
    texts = app.stream("texts", key=serdes.string, value=serdes.string).group_by_key()
    numbers = app.stream("numbers", key=serdes.string, value=serdes.int64).group_by_key()
    both = texts.cogroup(add).cogroup(numbers, lambda key, number, so_far: so_far + number)
    assert_type(both, Cogrouped[str, int])
    assert_type(both.aggregate(int, value=serdes.int64), Table[str, int])
    hourly = both.windowed_by(windows.tumbling(3_600_000))
    assert_type(hourly.aggregate(int, value=serdes.int64), Table[Windowed[str], int])
