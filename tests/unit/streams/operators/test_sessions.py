"""Test that session windows grow together, close, and delete the sessions that were merged."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, Windowed, serdes, windows
from streams.errors import TopologyError

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def sessions(
    *, gap: int = 10, grace: int = 0, caching: bool = False, commit: Any = "each_record", **how: Any
) -> TopologyTestDriver:
    """Return a driver whose sessions concatenate the values of their records."""
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.session(gap, grace))
    table = cut.aggregate(
        str,
        lambda key, value, so_far: so_far + value,
        merger=lambda key, one, other: one + other,
        value=serdes.string,
        store=Store.in_memory("s", caching=caching, retention=100),
        **how,
    )
    table.to_stream().to("out")
    return TopologyTestDriver(app, commit=commit)


def piped(driver: TopologyTestDriver, **times_ms: int) -> list[tuple[Any, ...]]:
    """Pipe these values at these times; return start, end, value and timestamp of the results."""
    for value, time_ms in times_ms.items():
        driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
    found = driver.topic("out").read_all()
    return [(r.key.start_ms, r.key.end_ms, r.value, r.timestamp_ms) for r in found]


def test_a_record_within_the_gap_makes_the_session_longer_and_the_shorter_one_goes() -> None:
    with sessions() as driver:
        assert piped(driver, a=5, b=15) == [
            (5, 5, "a", 5),
            (5, 5, None, 5),
            (5, 15, "ab", 15),
        ]
        assert list(driver.store("s").all()) == [(Windowed("k", 5, 15), "ab")]


def test_a_record_beyond_the_gap_begins_another() -> None:
    with sessions() as driver:
        assert piped(driver, a=5, b=16) == [(5, 5, "a", 5), (16, 16, "b", 16)]


def test_a_record_between_two_sessions_joins_them_oldest_first() -> None:
    with sessions(grace=20) as driver:
        piped(driver, b=20, a=3)
        assert piped(driver, c=11) == [
            (3, 3, None, 3),
            (20, 20, None, 20),
            (3, 20, "abc", 20),
        ]


def test_a_record_at_the_time_of_a_session_of_one_record_deletes_nothing() -> None:
    with sessions() as driver:
        assert piped(driver, a=5)[-1] == (5, 5, "a", 5)
        assert piped(driver, b=5) == [(5, 5, "ab", 5)]


def test_a_record_inside_of_a_session_takes_its_place() -> None:
    with sessions() as driver:
        piped(driver, a=5, b=15)
        assert piped(driver, c=10) == [(5, 15, None, 15), (5, 15, "abc", 15)]


def test_a_session_closes_when_stream_time_is_the_gap_and_the_grace_past_its_end() -> None:
    late: list[Any] = []
    with sessions(grace=5, on_late=late.append) as driver:
        piped(driver, a=35)
        assert piped(driver, b=20) == [(20, 20, "b", 20)]
        assert piped(driver, c=19) == [(20, 20, None, 20), (19, 20, "bc", 20)]
        assert piped(driver, d=8) == []
    (record,) = late
    assert (record.window_start_ms, record.window_end_ms, record.stream_time_ms) == (8, 8, 35)


def test_with_caching_what_came_and_went_between_two_commits_is_not_told() -> None:
    with sessions(caching=True, commit="manual") as driver:
        piped(driver, a=5, b=15)
        driver.commit()
        assert piped(driver) == [(5, 15, "ab", 15)]
        piped(driver, c=20)
        driver.commit()
        assert piped(driver) == [(5, 15, None, 15), (5, 20, "abc", 20)]


def test_results_at_once_have_no_headers_and_those_of_a_commit_have() -> None:
    for caching, headers in ((False, ()), (True, (("n", b"1"),))):
        with sessions(caching=caching) as driver:
            driver.topic("in").pipe("k", "a", timestamp_ms=5, headers=[("n", b"1")])
            assert driver.topic("out").read().headers == headers


def test_a_record_keeps_its_headers_for_the_steps_after_its_session() -> None:
    app = App("a")
    records = app.stream("in", **TEXT)
    cut = records.group_by_key().windowed_by(windows.session(10))
    cut.count(store=Store.in_memory("s", caching=False)).to_stream().to("out")
    records.to("copy")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "a", timestamp_ms=5, headers=[("n", b"1")])
        assert driver.topic("out").read().headers == ()
        assert driver.topic("copy").read().headers == (("n", b"1"),)


def test_on_close_a_session_is_passed_on_once_by_end_start_and_key() -> None:
    with sessions(emit="on_close") as driver:
        for key, time_ms in (("b", 5), ("a", 5), ("b", 9), ("c", 9)):
            driver.topic("in").pipe(key, key, timestamp_ms=time_ms)
        assert piped(driver, x=15) == []
        driver.topic("in").pipe("y", "y", timestamp_ms=500)
        found = [(str(r.key), r.value, r.timestamp_ms) for r in driver.topic("out").read_all()]
        assert found == [
            ("[a@5/5]", "a", 5),
            ("[b@5/9]", "bb", 9),
            ("[c@9/9]", "c", 9),
            ("[k@15/15]", "x", 15),
        ]


def test_on_close_what_is_merged_goes_on_once() -> None:
    with sessions(emit="on_close", grace=20) as driver:
        found = piped(driver, a=3, c=20, b=11, d=52, e=90)
        assert found == [(3, 20, "acb", 20), (52, 52, "d", 52)]


@pytest.mark.parametrize("emit", ["on_update", "on_close"])
def test_a_crash_leaves_results_as_if_there_had_been_none(emit: str) -> None:
    times = {"a": 5, "b": 12, "c": 40, "d": 22, "e": 30, "f": 90, "g": 41, "h": 200}
    with sessions(grace=10, emit=emit) as driver, sessions(grace=10, emit=emit) as crashing:
        undisturbed = piped(driver, **times)
        found = []
        for value, time_ms in times.items():
            found += piped(crashing, **{value: time_ms})
            crashing.crash()
            crashing.restart()
    assert found == undisturbed
    assert found


def test_count_and_reduce_merge_by_themselves() -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.session(10))
    cut.count().to_stream().to("counts")
    cut.reduce(max).to_stream().to("largest")
    with TopologyTestDriver(app) as driver:
        for value, time_ms in (("b", 5), ("a", 12), ("c", 14)):
            driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
        counts, largest = driver.topic("counts"), driver.topic("largest")
        assert counts.read_table() == {Windowed("k", 5, 14): 3}
        assert largest.read_table() == {Windowed("k", 5, 14): "c"}


def test_a_merger_that_changes_what_it_is_handed_harms_nobody() -> None:
    def extended(key: str, one: list[str], other: list[str]) -> list[str]:
        other[:0] = one
        return other

    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.session(10))
    kept = Store.in_memory("s", caching=False, retention=100)
    table = cut.aggregate(
        list, lambda k, v, a: [*a, v], merger=extended, value=serdes.json, store=kept
    )
    gone: list[Any] = []

    def without(key: str, value: list[str], so_far: list[str]) -> list[str]:
        gone.append(value)
        return [each for each in so_far if each not in value]

    table.group_by(
        lambda key, value: (key.key, value), key=serdes.string, value=serdes.json
    ).aggregate(
        list,
        lambda key, value, so_far: [*so_far, *value],
        without,
        value=serdes.json,
    ).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        for value, time_ms in (("a", 5), ("b", 12), ("c", 30), ("d", 22)):
            driver.topic("in").pipe("k", value, timestamp_ms=time_ms)
        assert driver.topic("out").read_table() == {"k": ["a", "b", "c", "d"]}
    assert gone == [["a"], ["a", "b"], ["c"]]


def test_sessions_need_a_merger() -> None:
    cut = App("a").stream("in", **TEXT).group_by_key().windowed_by(windows.session(10))
    with pytest.raises(TopologyError, match="give merger="):
        cut.aggregate(str, lambda key, value, so_far: so_far, value=serdes.string)


@pytest.mark.parametrize("emit", ["on_update", "on_close"])
def test_a_session_that_is_just_open_is_kept(emit: Any) -> None:
    app = App("a")
    cut = app.stream("in", **TEXT).group_by_key().windowed_by(windows.session(10, grace=5))
    cut.count(store="s", emit=emit).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        for key, time_ms in (("a", 106), ("b", 91), ("b", 91), ("c", 200)):
            driver.topic("in").pipe(key, "v", timestamp_ms=time_ms)
        assert driver.topic("out").read_table()[Windowed("b", 91, 91)] == 2
        assert driver.dropped == 0
