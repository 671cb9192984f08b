"""Test in which order and from where on windows, sessions and versions are read, and how many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, windows
from streams.errors import ConfigError
from streams.graph.nodes import StoreSpec
from streams.queries.store_reads import (
    StoreRead,
    StoreRow,
    check_read_fits_store,
    merge_rows,
    read_rows,
)

_STEP_MS = 100_000
_KEYS = "edcba"


def build(kind: str) -> tuple[App, StoreSpec]:
    app = App("a")
    if kind == "versioned":
        store = Store.versioned("found", history=1_000)
        app.table("in", key=serdes.string, value=serdes.string, store=store)
    else:
        grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
        if kind == "window":
            by = grouped.windowed_by(windows.tumbling(10, grace=6 * _STEP_MS))
            by.count(store="found")
        else:
            sessions = grouped.windowed_by(windows.session(10, grace=6 * _STEP_MS))
            sessions.count(store="found")
    [spec] = app.topology().subtopologies[0].stores
    return app, spec


def load(driver: TopologyTestDriver) -> None:
    """Count five keys, each twice; the keys' order is the reverse of the segments'."""
    for number, key in enumerate(_KEYS):
        for later_ms in (0, 50):
            driver.topic("in").pipe(key, "v", timestamp_ms=number * _STEP_MS + later_ms)


def read(spec: StoreSpec, store: Any, wanted: StoreRead) -> tuple[list[StoreRow], bool]:
    check_read_fits_store(spec, wanted)
    return merge_rows(spec, [read_rows(spec, store, wanted)], wanted)


@pytest.mark.parametrize("kind", ["window", "session"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_limited_range_is_the_first_windows_by_key_and_start(kind: str, reverse: bool) -> None:
    app, spec = build(kind)
    with TopologyTestDriver(app, stores="memory") as driver:
        load(driver)
        store = driver.store("found")
        whole, _ = read(spec, store, StoreRead())
        expected = [key for key in "abcde" for _ in range(2)]
        assert [row.key for row in whole] == expected
        starts_ms = [row.start_ms or 0 for row in whole]
        assert all(starts_ms[n] < starts_ms[n + 1] for n in range(0, 10, 2))
        if reverse:
            whole = whole[::-1]
        for limit in range(1, 12):
            found, has_more = read(spec, store, StoreRead(limit=limit, is_reverse=reverse))
            assert (found, has_more) == (whole[:limit], limit < 10)


@pytest.mark.parametrize("kind", ["window", "session"])
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_a_range_are_the_whole_range(kind: str, reverse: bool) -> None:
    app, spec = build(kind)
    with TopologyTestDriver(app, stores="memory") as driver:
        load(driver)
        store = driver.store("found")
        whole, _ = read(spec, store, StoreRead(is_reverse=reverse))
        pages: list[StoreRow] = []
        wanted, has_more = StoreRead(is_reverse=reverse, limit=3), True
        while has_more:
            found, has_more = read(spec, store, wanted)
            pages += found
            last = found[-1]
            wanted = StoreRead(
                is_reverse=reverse,
                limit=3,
                after=last.key,
                after_start_ms=last.start_ms,
                after_end_ms=last.end_ms if kind == "session" else None,
            )
        assert pages == whole


@pytest.mark.parametrize("kind", ["window", "session"])
def test_the_windows_of_a_key_come_newest_first_in_reverse(kind: str) -> None:
    app, spec = build(kind)
    with TopologyTestDriver(app, stores="memory") as driver:
        load(driver)
        store = driver.store("found")
        rows, _ = read(spec, store, StoreRead(is_lookup=True, key="a"))
        newest, has_more = read(
            spec, store, StoreRead(is_lookup=True, key="a", is_reverse=True, limit=1)
        )
        assert (newest, has_more) == ([rows[-1]], True)
        assert len(rows) == 2


def test_the_versions_of_a_time_are_those_that_were_valid_in_it() -> None:
    app, spec = build("versioned")
    with TopologyTestDriver(app, stores="memory") as driver:
        for value, time_ms in (("one", 100), ("two", 200), (None, 300), ("four", 400)):
            driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
        store = driver.store("found")

        def read_times(from_ms: int, to_ms: int | None, **more: Any) -> list[tuple[Any, ...]]:
            wanted = StoreRead(is_lookup=True, key="k", from_ms=from_ms, to_ms=to_ms, **more)
            rows, _ = read(spec, store, wanted)
            assert all(row.timestamp_ms == row.start_ms for row in rows)
            return [(row.value, row.start_ms, row.end_ms) for row in rows]

        whole = [("one", 100, 200), ("two", 200, 300), ("four", 400, None)]
        assert read_times(0, None) == whole
        assert read_times(0, None, is_reverse=True) == whole[::-1]
        assert read_times(0, 99) == []
        assert read_times(0, 100) == whole[:1]
        assert read_times(199, 200) == whole[:2]
        assert read_times(200, 399) == whole[1:2]
        assert read_times(300, 399) == []
        assert read_times(500, None) == whole[2:]
        driver.topic("in").pipe("other", "v", timestamp_ms=1_250)
        assert read_times(0, None) == whole[1:]  # the first one was valid before the history only
        driver.topic("in").pipe("other", "v", timestamp_ms=9_000)
        assert read_times(0, 500) == whole[2:]


def test_a_store_that_is_ordered_by_time_or_keeps_duplicates_may_have_several_rows() -> None:
    spec = build("window")[1]
    one = StoreRead(is_lookup=True, key="a", from_ms=10, to_ms=10)
    assert one.has_one_row(spec)
    assert not one.has_one_row(replace(spec, is_ordered_by_time=True))
    assert not one.has_one_row(replace(spec, retain_duplicates=True))
    assert not replace(one, to_ms=11).has_one_row(spec)
    assert not replace(one, is_lookup=False).has_one_row(spec)


@pytest.mark.parametrize(
    ("kind", "wanted", "reason"),
    [
        ("window", StoreRead(after="a"), "behind a row by its key, start, and"),
        ("session", StoreRead(after="a", after_start_ms=1), "its key, start, end"),
        ("window", StoreRead(is_lookup=True, key="a", after="a", after_start_ms=1), "look-up"),
        ("versioned", StoreRead(is_lookup=True, key="a", after="a"), "look-up does not"),
        ("session", StoreRead(from_ms=1), "no range of times"),
        ("versioned", StoreRead(is_lookup=True, key="a", as_of_ms=1, from_ms=1), "or versions of"),
    ],
)
def test_a_read_that_a_kind_of_store_does_not_have_is_refused(
    kind: str, wanted: StoreRead, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_read_fits_store(build(kind)[1], wanted)
