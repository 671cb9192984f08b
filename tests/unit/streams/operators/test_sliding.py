"""Test sliding windows: one for each set of records at most the time difference apart (KIP-450)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, windows

TEXT: Any = {"key": serdes.string, "value": serdes.string}
Rows = dict[tuple[int, int], str]


def sliding(
    difference: int, grace: int, *, caching: bool = False, commit: Any = "each_record", **how: Any
) -> TopologyTestDriver:
    """Return a driver whose windows concatenate the values of their records in order of arrival."""
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.sliding(difference, grace))
    store = Store.in_memory("s", caching=caching)
    table = cut.reduce(lambda old, new: old + new, store=store, **how)
    table.to_stream().to("out")
    return TopologyTestDriver(app, commit=commit)


def piped(driver: TopologyTestDriver, **times_ms: int) -> list[tuple[int, int, str]]:
    for value, time_ms in times_ms.items():
        driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
    return [(r.key.start_ms, r.key.end_ms, r.value) for r in driver.topic("out").read_all()]


def test_each_record_has_a_window_that_ends_with_it_and_one_behind_it_if_records_follow() -> None:
    with sliding(10, 50) as driver:
        assert piped(driver, a=20) == [(10, 20, "a")]
        assert piped(driver, b=25) == [(21, 31, "b"), (15, 25, "ab")]


def test_both_ends_are_part_of_a_window() -> None:
    with sliding(10, 50) as driver:
        assert piped(driver, a=20, b=30)[1:] == [(21, 31, "b"), (20, 30, "ab")]


def test_a_record_out_of_order_goes_into_the_windows_over_its_time() -> None:
    with sliding(10, 50) as driver:
        piped(driver, a=20, c=28)
        assert piped(driver, b=24) == [(21, 31, "cb"), (18, 28, "acb"), (14, 24, "ab"),
                                       (25, 35, "c")]  # fmt: skip


def test_windows_that_would_begin_before_0_are_one() -> None:
    with sliding(10, 50) as driver:
        assert piped(driver, a=3, b=7) == [(0, 10, "a"), (4, 14, "b"), (0, 10, "ab")]


def test_a_window_closes_when_stream_time_is_past_its_end_and_grace() -> None:
    late: list[Any] = []
    with sliding(10, 5, on_late=late.append) as driver:
        piped(driver, z=50)
        assert piped(driver, a=35) == [(36, 46, "z")][1:] + [(25, 35, "a")][1:]
        assert [(each.window_start_ms, each.window_end_ms) for each in late] == [(25, 35)]
        assert piped(driver, b=34) == []
        assert driver.metrics()["late"] == 2


def test_records_without_key_or_value_are_dropped_and_time_stands_still() -> None:
    with sliding(10, 0) as driver:
        driver.topic("in").pipe(None, "v", timestamp_ms=500)
        driver.topic("in").pipe("k", None, timestamp_ms=500)
        assert piped(driver, a=20) == [(10, 20, "a")]
        assert (driver.dropped, driver.metrics()["late"]) == (2, 0)


def wanted(records: list[tuple[str, int]], difference: int) -> Rows:
    """Compute the expected windows from the definition of sliding windows (KIP-450).

    Each record gives the window that ends with it and the one right behind it; the records before
    the difference share one.
    """
    times = {time_ms for _, time_ms in records}
    starts = {max(time_ms - difference, 0) for time_ms in times} | {each + 1 for each in times}
    rows = {}
    for start_ms in starts:
        inside = [value for value, at in records if start_ms <= at <= start_ms + difference]
        if inside:
            rows[start_ms, start_ms + difference] = "".join(inside)
    return rows


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_order_the_windows_are_those_of_the_definition(seed: int) -> None:
    rng = Random(seed)
    difference = rng.choice((3, 10, 25))
    records = [(rng.choice("abc"), rng.randrange(1, 60)) for _ in range(rng.randrange(1, 14))]
    caching = rng.random() < 0.5
    with sliding(difference, 1000, caching=caching, commit="manual") as driver:
        for value, time_ms in records:
            driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
        driver.commit()
        table = driver.topic("out").read_table()
        found = {(key.start_ms, key.end_ms): "".join(sorted(table[key])) for key in table}
    rows = wanted(records, difference)
    assert found == {each: "".join(sorted(rows[each])) for each in rows}, f"{seed=} {records}"


def test_on_close_each_window_is_passed_on_once_in_the_order_of_time() -> None:
    with sliding(10, 0, emit="on_close") as driver:
        assert piped(driver, a=20, b=25) == [(10, 20, "a")]
        assert piped(driver, c=31) == [(15, 25, "ab")]
        assert piped(driver, d=90) == [(21, 31, "bc"), (26, 36, "c")]


def test_on_close_what_is_dropped_closes_nothing() -> None:
    with sliding(10, 0, emit="on_close") as driver:
        assert piped(driver, a=20) == []
        driver.topic("in").pipe("k", None, timestamp_ms=500)
        driver.topic("in").pipe(None, "v", timestamp_ms=500)
        assert piped(driver) == []


@pytest.mark.parametrize("emit", ["on_update", "on_close"])
def test_a_crash_leaves_results_as_if_there_had_been_none(emit: str) -> None:
    times = {"a": 5, "b": 12, "c": 40, "d": 22, "e": 36, "f": 38, "g": 41, "h": 200}
    with sliding(10, 5, emit=emit) as driver, sliding(10, 5, emit=emit) as crashing:
        undisturbed = piped(driver, **times)
        found = []
        for value, time_ms in times.items():
            found += piped(crashing, **{value: time_ms})
            crashing.crash()
            crashing.restart()
    assert found == undisturbed
    assert len(found) > 5


@pytest.mark.parametrize("seed", range(8))
def test_an_aggregate_that_is_changed_in_place_is_each_windows_own(seed: int) -> None:
    def collect(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        return seen

    rng = Random(seed)
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.sliding(10, 1000))
    kept = Store.in_memory("s", caching=seed % 2 == 0)
    cut.aggregate(list, collect, value=serdes.json, store=kept).to_stream().to("out")
    records = [(rng.choice("abc"), rng.randrange(1, 40)) for _ in range(10)]
    with TopologyTestDriver(app, commit="manual") as driver:
        for value, time_ms in records:
            driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
        driver.commit()
        table = driver.topic("out").read_table()
    rows = wanted(records, 10)
    assert {(key.start_ms, key.end_ms): sorted(table[key]) for key in table} == {
        each: sorted(rows[each]) for each in rows
    }, f"{seed=} {records}"
