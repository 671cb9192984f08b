"""Test which types mypy infers for windows and cogroups; mypy is what checks this file."""

from __future__ import annotations

from typing import assert_type

from streams import App, LateRecord, Windowed, serdes, until_window_closes, windows
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


def test_the_type_checker_knows_the_keys_of_every_kind_of_window() -> None:
    group = App("a").stream("in", key=serdes.int64, value=serdes.string).group_by_key()
    for cut in (
        windows.tumbling(10, 0),
        windows.hopping(10, 5),
        windows.sliding(10),
        windows.session(10),
        windows.unlimited(),
    ):
        assert_type(group.windowed_by(cut).count(), Table[Windowed[int], int])
    last = group.windowed_by(windows.tumbling(10)).reduce(lambda old, new: new, emit="on_close")
    assert_type(last, Table[Windowed[int], str])
    final = last.suppress(until_window_closes())
    assert_type(final, Table[Windowed[int], str])
    chain = (
        final.filter(lambda window, text: window.end_ms > window.key + len(text))
        .to_stream()
        .select_key(lambda window, text: window.key)
        .map_values(str.encode)
    )
    assert_type(chain, Stream[int, bytes])


def wrong() -> None:
    """Hold lines that mypy must refuse and never run: mypy reports an ignore that is not needed."""
    group = App("a").stream("in", key=serdes.string, value=serdes.string).group_by_key()
    cut = group.windowed_by(windows.tumbling(10))
    group.windowed_by(10)  # type: ignore[arg-type]
    cut.count(emit="on_commit")  # type: ignore[arg-type]
    cut.count().to_stream().map(lambda key, count: (key.upper(), count))  # type: ignore[attr-defined]
    cut.reduce(lambda old, new: len(new))  # type: ignore[arg-type, return-value]
    cut.aggregate(lambda: 0, lambda key, value, total: total + value, value=serdes.int64)  # type: ignore[operator]
    cut.aggregate(lambda: 0, lambda key, value, total: str(total), value=serdes.int64)  # type: ignore[arg-type, return-value]
    group.cogroup(add).cogroup(group, lambda key, value, total: value)  # type: ignore[arg-type, return-value]
    windows.tumbling("5 minutes")  # type: ignore[arg-type]
