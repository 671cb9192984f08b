"""Test windows of fixed size: their records, when results are emitted, and late records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import App, LateRecord, Store, TopologyTestDriver, Windowed, serdes, windows
from streams.errors import TopologyError
from streams.runtime.assigning.internal_topics import changelog_settings

TEXT: Any = {"key": serdes.string, "value": serdes.string}
Times = list[int]


def uncached(name: str = "c", **kept: Any) -> Store:
    return Store.in_memory(name, caching=False, **kept)


def counting(
    cut: Any, *, store: str | Store | None = None, commit: Any = "each_record", **how: Any
) -> TopologyTestDriver:
    app = App("a")
    grouped = app.stream("in", **TEXT).group_by_key()
    table = grouped.windowed_by(cut).count(store=store or uncached(), **how)
    table.to_stream().to("out")
    return TopologyTestDriver(app, commit=commit)


def counts(driver: TopologyTestDriver, *times_ms: int, key: str = "k") -> list[tuple[Any, ...]]:
    """Pipe records at these times; return start and end of the window, count and timestamp."""
    for time_ms in times_ms:
        driver.topic("in").pipe(key, "v", timestamp_ms=time_ms)
    return results(driver)


def results(driver: TopologyTestDriver) -> list[tuple[Any, ...]]:
    found = driver.topic("out").read_all()
    return [(r.key.start_ms, r.key.end_ms, r.value, r.timestamp_ms) for r in found]


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Close every driver that the test creates."""
    made: list[TopologyTestDriver] = []
    start = TopologyTestDriver.__init__

    def noting(self: TopologyTestDriver, *args: Any, **named: Any) -> None:
        start(self, *args, **named)
        made.append(self)

    monkeypatch.setattr(TopologyTestDriver, "__init__", noting)
    yield
    for driver in made:
        driver.close()


def test_a_tumbling_window_counts_the_records_of_its_time() -> None:
    found = counts(counting(windows.tumbling(10)), 1, 9, 10)
    assert found == [(0, 10, 1, 1), (0, 10, 2, 9), (10, 20, 1, 10)]


def test_a_record_is_in_every_hopping_window_over_its_time_oldest_first() -> None:
    found = counts(counting(windows.hopping(10, 4)), 9)
    assert found == [(0, 10, 1, 9), (4, 14, 1, 9), (8, 18, 1, 9)]


def test_no_window_begins_before_0() -> None:
    assert counts(counting(windows.hopping(10, 4)), 3) == [(0, 10, 1, 3)]


def test_an_unlimited_window_takes_what_is_not_before_its_start() -> None:
    driver = counting(windows.unlimited(start=5))
    assert counts(driver, 4, 7, 10**15) == [
        (5, 2**63 - 1, 1, 7),
        (5, 2**63 - 1, 2, 10**15),
    ]
    assert driver.dropped == 0


def test_a_result_has_the_largest_time_of_its_records() -> None:
    assert counts(counting(windows.tumbling(10)), 7, 3) == [(0, 10, 1, 7), (0, 10, 2, 7)]


def test_a_window_closes_when_stream_time_is_its_end_and_grace() -> None:
    driver = counting(windows.tumbling(10, grace=5))
    assert counts(driver, 14, 9) == [(10, 20, 1, 14), (0, 10, 1, 9)]
    assert counts(driver, 15, 9) == [(10, 20, 2, 15)]
    assert driver.dropped == 1


def test_a_late_record_is_counted_and_shown_for_each_window_that_it_misses() -> None:
    shown: list[LateRecord[str, str]] = []
    driver = counting(windows.hopping(10, 5), on_late=shown.append, name="step")
    assert counts(driver, 22, 13)[2:] == []
    first, second = shown
    assert (first.window_start_ms, first.window_end_ms) == (5, 15)
    assert (second.window_start_ms, second.window_end_ms) == (10, 20)
    assert (first.step, first.key, first.value, first.timestamp_ms) == ("step", "k", "v", 13)
    assert (first.topic, first.partition, first.offset) == ("in", 0, 1)
    assert first.stream_time_ms == 22
    assert driver.dropped == driver.metrics()["late"] == 2


def test_a_hopping_window_closes_at_its_end_too() -> None:
    driver = counting(windows.hopping(10, 5))
    assert counts(driver, 14, 9) == [(5, 15, 1, 14), (10, 20, 1, 14), (5, 15, 2, 14)]
    assert counts(driver, 15, 9) == [(10, 20, 2, 15), (15, 25, 1, 15)]
    assert driver.metrics()["late"] == 3


def test_time_is_of_the_step_and_not_of_each_key() -> None:
    driver = counting(windows.tumbling(10))
    counts(driver, 30, key="a")
    assert counts(driver, 5, key="b") == []


def test_records_without_a_key_are_dropped_and_those_without_a_value_counted() -> None:
    driver = counting(windows.tumbling(10))
    driver.topic("in").pipe(None, "v", timestamp_ms=50)
    driver.topic("in").pipe("k", None, timestamp_ms=1)
    assert results(driver) == [(0, 10, 1, 1)]
    assert (driver.dropped, driver.metrics()["late"]) == (1, 0)


def test_a_reducer_has_the_records_of_its_window_only() -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    cut.reduce(lambda old, new: old + new, store=uncached()).to_stream().to("out")
    driver = TopologyTestDriver(app)
    for value, time_ms in (("a", 1), ("b", 12), ("c", 3), ("d", 12)):
        driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
    assert driver.topic("out").read_values() == ["a", "b", "bd"]


def test_an_aggregate_that_is_changed_in_place_is_each_windows_own() -> None:
    def collect(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        return seen

    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.hopping(10, 5))
    cut.aggregate(list, collect, value=serdes.json, store=uncached()).to_stream().to("out")
    driver = TopologyTestDriver(app)
    for value, time_ms in (("a", 6), ("b", 11)):
        driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
    assert driver.topic("out").read_table() == {
        Windowed("k", 0, 10): ["a"],
        Windowed("k", 5, 15): ["a", "b"],
        Windowed("k", 10, 20): ["b"],
    }


@pytest.mark.parametrize("cut", [windows.hopping(10, 5), windows.sliding(10), windows.session(9)])
def test_a_value_that_a_reducer_changes_in_place_is_each_windows_own(cut: Any) -> None:
    def extended(old: list[str], new: list[str]) -> list[str]:
        old += new
        return old

    app = App("a")
    lists = app.stream("in", **TEXT).map_values(lambda value: [value], value=serdes.json)
    for topic in ("one", "other"):
        lists.group_by_key().windowed_by(cut).reduce(extended).to_stream().to(topic)
    driver = TopologyTestDriver(app, commit="manual")
    driver.topic("in").pipe_many([("k", "a", 6), ("k", "b", 7), ("k", "c", 8)])
    driver.commit()
    for topic in ("one", "other"):
        assert max(driver.topic(topic).read_values(), key=len) == ["a", "b", "c"]


def test_none_deletes_the_window() -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    cut.reduce(lambda old, new: None, store=uncached()).to_stream().to("out")
    driver = TopologyTestDriver(app)
    for value, time_ms in (("a", 4), ("b", 2), ("c", 3)):
        driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
    found = [(r.value, r.timestamp_ms) for r in driver.topic("out").read_all()]
    assert found == [("a", 4), (None, 4), ("c", 3)]


def test_with_caching_a_window_goes_on_once_a_commit_in_the_order_of_its_last_change() -> None:
    driver = counting(windows.tumbling(10, grace=10), store="c", commit="manual")
    driver.topic("in").pipe_many([("k", "v", 1), ("k", "v", 11), ("k", "v", 2)])
    driver.commit()
    assert results(driver) == [(10, 20, 1, 11), (0, 10, 2, 2)]


def test_on_close_each_window_is_passed_on_once_by_start_and_key() -> None:
    driver = counting(windows.hopping(10, 5), emit="on_close", store="c")
    for key in ("b", "a", "b"):
        assert counts(driver, 3, 6, key=key) == []
    assert counts(driver, 12) == [(0, 10, 2, 6), (0, 10, 4, 6)]
    for key, time_ms in (("a", 14), ("k", 16)):
        driver.topic("in").pipe(key, "v", timestamp_ms=time_ms)
    found = [(r.key.key, r.key.start_ms, r.value) for r in driver.topic("out").read_all()]
    assert found == [("a", 5, 2), ("b", 5, 2), ("k", 5, 1)]


def test_on_close_no_window_is_lost_where_time_leaps_over_its_retention() -> None:
    driver = counting(windows.tumbling(10), emit="on_close", store="c")
    assert counts(driver, 1, 1_000_000_000) == [(0, 10, 1, 1)]


def test_on_close_results_have_the_headers_of_the_record_that_closed_them() -> None:
    driver = counting(windows.tumbling(10), emit="on_close")
    driver.topic("in").pipe("k", "v", timestamp_ms=1, headers=[("n", b"1")])
    driver.topic("in").pipe("k", "v", timestamp_ms=10, headers=[("n", b"2")])
    assert [r.headers for r in driver.topic("out").read_all()] == [(("n", b"2"),)]


@pytest.mark.parametrize("emit", ["on_update", "on_close"])
def test_a_crash_leaves_lateness_and_results_as_if_there_had_been_none(emit: str) -> None:
    times = [3, 8, 25, 7, 31, 12, 29, 60]
    driver = counting(windows.tumbling(10, grace=5), emit=emit)
    undisturbed = counts(driver, *times)
    crashing = counting(windows.tumbling(10, grace=5), emit=emit)
    found = []
    for time_ms in times:
        found += counts(crashing, time_ms)
        crashing.crash()
        crashing.restart()
    assert found == undisturbed
    assert len(found) == {"on_update": 6, "on_close": 3}[emit]


def test_all_windows_of_a_key_are_written_to_the_partition_of_the_key() -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    cut.count(store=uncached()).to_stream().to("out")
    driver = TopologyTestDriver(app, partitions={"in": 8, "out": 8})
    for number in range(40):
        driver.topic("in").pipe(f"k{number % 5}", "v", timestamp_ms=number)
    places: dict[str, set[int]] = {}
    for record in driver.topic("out").read_all():
        places.setdefault(record.key.key, set()).add(record.partition)
    assert len(places) == 5
    assert all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) > 1


def test_a_filter_of_a_windowed_table_says_what_was_there() -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    table = cut.count(store=uncached())
    table.filter(lambda key, count: count % 2, store=uncached("odd")).to_stream().to("out")
    assert [each[2] for each in counts(TopologyTestDriver(app), 1, 2, 3)] == [1, None, 3]


def test_the_store_keeps_windows_for_size_and_grace_and_its_changelog_whatever_the_clock_says() -> (
    None
):
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10, grace=5))
    cut.count(store="c")
    (spec,) = app.topology().subtopologies[0].stores
    assert (spec.kind, spec.retention_ms, spec.window_size_ms) == ("window", 15, 10)
    settings = changelog_settings(spec)
    assert settings["cleanup.policy"] == "compact,delete"
    assert settings["retention.ms"] == "-1"


def test_the_store_may_keep_windows_for_longer() -> None:
    driver = counting(
        windows.tumbling(10), store=Store.persistent("c", retention=timedelta(hours=1))
    )
    counts(driver, 1, 500)
    assert list(driver.store("c").all()) == [
        (Windowed("k", 0, 10), 1),
        (Windowed("k", 500, 510), 1),
    ]


GROUPED = App("a").stream("in", **TEXT).group_by_key()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: windows.tumbling(0), "tumbling: size=0 must be at least 1 ms"),
        (lambda: windows.tumbling(-1), "tumbling: size can't be negative"),
        (lambda: windows.tumbling("5m"), "neither milliseconds nor a timedelta"),  # type: ignore
        (lambda: windows.tumbling(10, grace=-1), "grace can't be negative"),
        (lambda: windows.tumbling(2**62), "too long.*unlimited"),
        (lambda: windows.hopping(10, 11), "advance is 11 ms and size 10 ms"),
        (lambda: windows.hopping(10, 0), "advance=0 must be at least 1 ms"),
        (lambda: windows.sliding(0), "difference=0 must be"),
        (lambda: windows.session(-1), "gap can't be negative"),
        (lambda: windows.unlimited(-1), "start=-1 is not a time"),
        (lambda: GROUPED.windowed_by(5), "take windows.tumbling"),  # type: ignore
        (lambda: counting(windows.tumbling(10), emit="later"), "neither 'on_update' nor"),
        (lambda: counting(windows.unlimited(), emit="on_close"), "never closes"),
        (lambda: counting(windows.tumbling(10, idle_close=5)), "take emit='on_close'"),
        (
            lambda: counting(windows.tumbling(10, grace=5), store=uncached(retention=14)),
            "store 'c'.*14 ms.*15 ms: make retention= at least",
        ),
        (
            lambda: counting(windows.tumbling(10), store=Store.window("c", size=5, retention=50)),
            "windows of 5 ms, and the step's are of 10 ms",
        ),
        (lambda: counting(windows.tumbling(10), store=uncached(ttl=5)), "not by ttl"),
        (
            lambda: counting(windows.tumbling(10), store=Store.session("c", retention=50)),
            "needs a window or key-value store",
        ),
        (
            lambda: GROUPED.windowed_by(windows.tumbling(10)).aggregate(
                list, lambda k, v, a: a, merger=lambda k, a, b: a, value=serdes.json
            ),
            "merger, which is for sessions",
        ),
        (lambda: counting(windows.tumbling(10), on_late="print"), "needs a function"),
    ],
)
def test_what_can_not_be_is_refused_when_it_is_described(wrong: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        wrong()


CUTS = [
    windows.tumbling(10, grace=5, idle_close=1000),
    windows.hopping(10, 5, grace=5, idle_close=1000),
    windows.sliding(10, grace=5, idle_close=1000),
    windows.session(10, grace=5, idle_close=1000),
]


@pytest.mark.parametrize("cut", CUTS, ids=["tumbling", "hopping", "sliding", "session"])
def test_without_records_windows_close_by_the_clock_where_they_were_asked_to(cut: Any) -> None:
    driver = counting(cut, emit="on_close")
    assert counts(driver, 15, 16) == []
    for _ in range(4):
        driver.advance_wall_clock(ms=250)
        assert results(driver) == []
    driver.advance_wall_clock(ms=250)
    assert results(driver)
    assert counts(driver, 17) == []
    assert driver.metrics()["late"] == (2 if cut is CUTS[1] else 1)


def test_records_keep_windows_open_and_a_crash_does_not_open_them_again() -> None:
    driver = counting(windows.tumbling(10, idle_close=1000), emit="on_close")
    for time_ms in (5, 6, 7, 8):
        assert counts(driver, time_ms) == []
        driver.advance_wall_clock(ms=900)
    driver.advance_wall_clock(ms=1000)
    assert results(driver) == [(0, 10, 4, 8)]
    driver.crash()
    driver.restart()
    assert counts(driver, 9) == []
    driver.advance_wall_clock(ms=5000)
    assert results(driver) == []


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize(
    ("cut", "subtracted"),
    [
        (windows.tumbling(10), [1, 2]),
        (windows.hopping(10, 5), [1, 2]),
        (windows.sliding(10), [1, 1, 2]),
        (windows.session(10), [1, 2]),
    ],
    ids=["tumbling", "hopping", "sliding", "session"],
)
def test_old_values_are_what_a_window_had_and_of_a_new_one_there_is_none(
    cut: Any, subtracted: list[int], caching: bool
) -> None:
    gone: list[int] = []

    def minus(key: str, count: int, so_far: int) -> int:
        gone.append(count)
        return so_far - count

    app = App("a")
    table = app.stream("in", **TEXT).group_by_key().windowed_by(cut)
    counted = table.count(store=Store.in_memory("c", caching=caching, retention=100))
    counted.group_by(
        lambda window, count: (window.key, count), key=serdes.string, value=serdes.int64
    ).aggregate(int, lambda key, count, so_far: so_far + count, minus, value=serdes.int64)
    with TopologyTestDriver(app) as driver:
        for time_ms in (1, 2, 3):
            driver.topic("in").pipe("k", "v", timestamp_ms=time_ms)
    assert gone == subtracted
