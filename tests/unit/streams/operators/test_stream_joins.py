"""Test which records of two streams join, when, with which timestamp, and which stay stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streams import App, LateRecord, Store, TopologyError, serdes
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def pair(value: str, other: str) -> str:
    return f"{value}+{other}"


def joined(joiner: Callable[..., Any] = pair, **how: Any) -> BoundTask:
    app = App("a")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    how = {"within": 10} | how
    left.join(right, joiner, **how).to("out", value=serdes.string)
    return BoundTask(app)


def results(task: BoundTask) -> list[tuple[str, int]]:
    """Return values and timestamps of the produced records, and remove these from the task."""
    produced, task.produced = task.produced, []
    return [(value.decode(), timestamp_ms) for _, _, value, timestamp_ms, _ in produced]


def test_records_of_a_key_meet_whoever_comes_first_and_once() -> None:
    task = joined()
    task.pipe("k", "a", 5, topic="left")
    assert results(task) == []
    task.pipe("k", "b", 7, topic="right")
    assert results(task) == [("a+b", 7)]
    task.pipe("other", "c", 7, topic="left")
    assert results(task) == []
    task.pipe("k", "d", 6, topic="left")
    assert results(task) == [("d+b", 7)]


@pytest.mark.parametrize(
    ("grace", "found"),
    [(2, [("x+early", 15), ("x+again", 15), ("x+late", 20)]), (1, [("x+late", 20)])],
)
def test_all_of_the_other_stream_that_are_near_and_not_expired_are_found_oldest_first(
    grace: int, found: list[tuple[str, int]]
) -> None:
    task = joined(grace=grace)
    for value, timestamp_ms in (("late", 20), ("early", 10), ("again", 10), ("too-late", 31)):
        task.pipe("k", value, timestamp_ms, topic="right")
    task.pipe("k", "x", 15, topic="left")
    assert results(task) == found


@pytest.mark.parametrize(
    ("other_ms", "meets"), [(94, False), (95, True), (100, True), (103, True), (104, False)]
)
def test_a_window_may_reach_further_back_than_ahead(other_ms: int, meets: bool) -> None:
    for first, second in (("left", "right"), ("right", "left")):
        task = joined(within=None, before=5, after=3)
        times = {"left": 100, "right": other_ms}
        task.pipe("k", "v", times[first], topic=first)
        task.pipe("k", "v", times[second], topic=second)
        assert bool(results(task)) is meets


def test_a_window_may_lie_wholly_ahead() -> None:
    task = joined(within=None, before=timedelta(milliseconds=-3), after=5)
    task.pipe("k", "order", 100, topic="left")
    for timestamp_ms in (102, 103, 105, 106):
        task.pipe("k", str(timestamp_ms), timestamp_ms, topic="right")
    assert results(task) == [("order+103", 103), ("order+105", 105)]


def test_a_joined_record_has_the_headers_of_the_record_that_came_last() -> None:
    task = joined()
    task.pipe("k", "a", 5, topic="left", headers=[("side", b"left")])
    task.pipe("k", "b", 5, topic="right", headers=[("side", b"right")])
    assert [headers for *_, headers in task.produced] == [[("side", b"right")]]


def test_records_without_a_key_or_a_value_are_dropped_and_counted() -> None:
    task = joined()
    task.pipe(None, "a", 5, topic="left")
    task.pipe("k", None, 5, topic="left")
    task.pipe("k", "b", 5, topic="right")
    assert results(task) == []
    assert task.dropped_count == 2


def test_a_record_that_comes_too_late_meets_what_is_there_and_is_not_kept() -> None:
    task = joined()
    task.pipe("k", "new", 100, topic="left")
    task.pipe("k", "b", 79, topic="right")
    task.pipe("k", "late", 80, topic="left")
    assert results(task) == [("late+b", 80)]
    assert (task.dropped_count, task.late_count) == (1, 1)
    task.pipe("k", "c", 80, topic="right")
    assert results(task) == []


def test_a_record_that_comes_too_late_is_shown() -> None:
    seen: list[LateRecord[str, str]] = []
    task = joined(on_late=seen.append, name="j")
    task.pipe("k", "new", 100, topic="left")
    task.pipe("k", "late", 80, topic="left")
    [late] = seen
    assert (late.step, late.key, late.value, late.timestamp_ms) == (
        "j-this-windowed", "k", "late", 80
    )  # fmt: skip
    assert (late.topic, late.stream_time_ms, late.window_start_ms) == ("left", 100, None)


def test_a_late_record_of_a_stream_joined_with_itself_is_shown_once() -> None:
    seen: list[Any] = []
    app = App("a")
    stream = app.stream("left", **BOTH)
    stream.join(stream, pair, within=10, on_late=seen.append)
    task = BoundTask(app)
    task.pipe("k", "new", 100)
    task.pipe("k", "late", 80)
    assert len(seen) == 1


def test_a_joiner_may_be_handed_the_key() -> None:
    task = joined(lambda key, value, other: f"{key}:{value}+{other}", with_key=True)
    task.pipe("k", "a", 5, topic="left")
    task.pipe("k", "b", 5, topic="right")
    task.pipe("k", "c", 5, topic="left")
    assert results(task) == [("k:a+b", 5), ("k:c+b", 5)]


def test_what_a_joiner_does_to_a_value_does_not_reach_the_store() -> None:
    app = App("a")
    both: Any = {"key": serdes.string, "value": serdes.json}
    left, right = app.stream("left", **both), app.stream("right", **both)

    def spoil(value: list[int], other: list[int]) -> list[int]:
        other.append(9)
        return other

    left.join(right, spoil, within=10).to("out", value=serdes.json)
    task = BoundTask(app)
    task.pipe("k", "[1]", 5, topic="right")
    task.pipe("k", "[2]", 5, topic="left")
    task.commit_stores()
    task.pipe("k", "[3]", 5, topic="left")
    assert [value for _, _, value, *_ in task.produced] == [b"[1,9]", b"[1,9]"]


def test_a_joiner_that_fails_may_be_skipped_and_its_record_is_kept() -> None:
    def fussy(value: str, other: str) -> str:
        if value == "poison":
            raise ValueError("no")
        return pair(value, other)

    app = App("a")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    left.join(right, fussy, within=10).to("out", value=serdes.string)
    task = BoundTask(app, processing="skip")
    task.pipe("k", "b", 5, topic="right")
    task.pipe("k", "poison", 5, topic="left")
    task.pipe("k", "a", 5, topic="left")
    assert results(task) == [("a+b", 5)]
    assert len(list(task.stores["KSTREAM-JOINTHIS-0000000002-store"].all())) == 2


def test_a_stream_joined_with_itself_meets_each_pair_twice_and_itself_once() -> None:
    app = App("a")
    stream = app.stream("left", **BOTH)
    stream.join(stream, pair, within=10).to("out", value=serdes.string)
    task = BoundTask(app)
    task.pipe("k", "a", 5)
    task.pipe("k", "b", 6)
    assert results(task) == [("a+a", 5), ("b+a", 6), ("a+b", 6), ("b+b", 6)]


def test_a_name_names_steps_and_stores() -> None:
    app = App("a")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    left.join(right, pair, within=10, name="paid")
    [subtopology] = app.topology().subtopologies
    assert [node.name for node in subtopology.nodes][2:] == [
        "paid-this-windowed",
        "paid-other-windowed",
        "paid-this-join",
        "paid-other-join",
        "paid-merge",
    ]
    assert [spec.name for spec in subtopology.stores] == [
        "paid-this-join-store",
        "paid-other-join-store",
    ]


def test_stores_are_kept_as_asked_and_long_enough() -> None:
    app = App("a")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    memory = Store.in_memory("mine", logged=False)
    own = Store.window("theirs", size=20, retention=27, retain_duplicates=True)
    left.join(right, pair, within=10, grace=7, store=memory, other_store=own)
    mine, theirs = app.topology().subtopologies[0].stores
    assert (mine.name, mine.persistent, mine.logged) == ("mine", False, False)
    assert theirs.name == "theirs"
    for spec in (mine, theirs):
        assert (spec.window_size_ms, spec.retention_ms) == (20, 27)
        assert spec.topic_settings["cleanup.policy"] == "delete"


def test_streams_with_changed_keys_go_through_topics_named_after_the_join() -> None:
    def topics(**how: Any) -> frozenset[str]:
        app = App("a")
        left, right = (
            app.stream(topic, **BOTH).select_key(
                lambda key, value: value, key=serdes.string, name=f"by-{topic}"
            )
            for topic in ("left", "right")
        )
        left.join(right, pair, within=10, **how)
        return app.topology().repartition_topics

    assert topics() == {"a-by-left-repartition", "a-by-right-repartition"}
    assert topics(name="j") == {"a-j-left-repartition", "a-j-right-repartition"}


def test_a_stream_joined_twice_goes_through_one_topic() -> None:
    app = App("a")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    again = left.select_key(lambda key, value: value, key=serdes.string, name="again")
    again.join(right, pair, within=10)
    again.join(again, pair, within=10)
    assert app.topology().repartition_topics == {"a-again-repartition"}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"within": None}, "within=timedelta"),
        ({"within": "soon"}, "within='soon' is neither milliseconds nor a timedelta"),
        ({"within": -1}, "within can't be negative: -1 ms"),
        ({"grace": -1}, "grace can't be negative: -1 ms"),
        ({"within": None, "before": -5, "after": 3}, "ends before it begins: from 5 ms to 3 ms"),
        ({"joiner": 7}, "step 'j' needs a function, got 7"),
        (
            {"store": Store.window("w", size=20, retention=20)},
            "retain_duplicates=True",
        ),
        (
            {"store": Store.window("w", size=5, retention=20, retain_duplicates=True)},
            "store 'w' of step 'j' has size=5 ms, and the window of the join is 20 ms",
        ),
        ({"store": Store.persistent("w", retention=5)}, "retention=5 ms"),
        ({"store": Store.persistent("w", ttl=5)}, "no ttl="),
        ({"store": Store.versioned("w", history=5)}, "is a versioned store"),
    ],
)
def test_what_can_not_be_joined_is_said(how: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        joined(**{"joiner": pair, "name": "j", **how})
