"""Test left and outer joins of two streams: an unmatched record is joined with None, in time."""

from __future__ import annotations

from typing import Any, assert_type

import pytest

from streams import App, Store, TopologyError, serdes
from streams.dsl.stream import Stream
from streams.serdes.join_sides import (
    LeftOrRightValue,
    TimestampedKeyAndJoinSide,
    create_left_or_right_values_serde,
    create_timestamped_key_serde,
)
from tests.unit.streams.bound import BoundTask
from tests.unit.streams.operators.test_stream_joins import results

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def pair(value: str | None, other: str | None) -> str:
    return f"{value}+{other}"


def joined(kind: str, *, value: Any = serdes.string, **how: Any) -> App:
    app = App("a")
    both: Any = {"key": serdes.string, "value": value}
    left, right = app.stream("left", **both), app.stream("right", **both)
    how = {"joiner": pair, "within": 10, "emit_interval": 0} | how
    getattr(left, kind)(right, **how).to("out", value=serdes.string)
    return app


def test_a_left_record_is_joined_with_none_when_its_window_has_closed() -> None:
    task = BoundTask(joined("left_join"))
    task.pipe("k", "a", 5, topic="left")
    task.pipe("other", "b", 15, topic="right")
    assert results(task) == []  # the window includes its end: 15
    task.pipe("other", "c", 16, topic="right", headers=[("who", b"closed it")])
    assert [headers for *_, headers in task.produced] == [[("who", b"closed it")]]
    assert results(task) == [("a+None", 5)]
    task.pipe("other", "d", 100, topic="right")
    assert results(task) == []  # once


def test_grace_keeps_the_window_open_for_longer() -> None:
    task = BoundTask(joined("left_join", grace=3))
    task.pipe("k", "a", 5, topic="left")
    task.pipe("other", "c", 18, topic="right")
    assert results(task) == []
    task.pipe("k", "late", 14, topic="right")
    assert results(task) == [("a+late", 14)]
    task.pipe("other", "c", 100, topic="right")
    assert results(task) == []  # The record has found a match.


def test_only_an_outer_join_joins_right_records_with_none() -> None:
    for kind, expected in (("left_join", []), ("outer_join", [("None+b", 5)])):
        task = BoundTask(joined(kind))
        task.pipe("k", "b", 5, topic="right")
        task.pipe("other", "x", 16, topic="left")
        assert results(task) == expected


def test_each_side_has_its_own_end_of_an_asymmetric_window() -> None:
    task = BoundTask(joined("outer_join", within=None, before=10, after=2))
    task.pipe("l", "a", 20, topic="left")
    task.pipe("r", "b", 20, topic="right")
    task.pipe("x", "x", 22, topic="left")
    assert results(task) == []
    task.pipe("y", "x", 23, topic="right")
    assert results(task) == []  # A record only looks for older ones by its own side's window.
    task.pipe("z", "x", 23, topic="left")
    assert results(task) == [("a+None", 20)]
    task.pipe("z", "x", 100, topic="right")
    assert results(task) == [("None+b", 20), ("x+None", 22), ("None+x", 23), ("x+None", 23)]


def test_what_waits_goes_in_the_order_of_times_right_before_left_and_as_it_came() -> None:
    task = BoundTask(joined("outer_join"))
    for key, value, timestamp_ms, topic in (
        ("k", "a1", 7, "left"),
        ("k2", "b", 7, "right"),
        ("k", "a2", 7, "left"),
        ("k3", "c", 6, "left"),
    ):
        task.pipe(key, value, timestamp_ms, topic=topic)
    task.commit_stores()
    task.pipe("x", "x", 50, topic="left")
    expected = [("c+None", 6), ("None+b", 7), ("a1+None", 7), ("a2+None", 7)]
    assert results(task) == expected


def test_a_record_without_a_key_is_joined_with_none_at_once() -> None:
    task = BoundTask(joined("left_join"))
    task.pipe(None, "a", 5, topic="left")
    assert results(task) == [("a+None", 5)]
    task.pipe(None, "b", 5, topic="right")
    task.pipe("k", None, 5, topic="left")
    assert results(task) == []
    assert task.dropped_count == 2


def test_a_record_that_comes_too_late_for_a_partner_is_joined_with_none_at_once() -> None:
    task = BoundTask(joined("left_join"))
    task.pipe("k", "x", 100, topic="right")
    task.pipe("k", "late", 89, topic="left")
    assert results(task) == [("late+None", 89)]
    task.pipe("k", "in-time", 90, topic="left")
    assert results(task) == [("in-time+x", 100)]


def test_what_waits_is_looked_for_at_most_once_in_an_interval() -> None:
    task = BoundTask(joined("left_join", emit_interval=1_000))
    task.elapsed_s = 5.0
    task.pipe("k", "a", 5, topic="left")  # This record looks for a match and finds none.
    task.pipe("x", "x", 100, topic="right")
    task.elapsed_s = 5.999
    task.pipe("x", "x", 101, topic="right")
    assert results(task) == []
    task.elapsed_s = 6.0
    task.pipe("x", "x", 100, topic="right")
    assert results(task) == []  # A record behind stream time looks for none.
    task.pipe("x", "x", 101, topic="right")
    assert results(task) == [("a+None", 5)]


def test_what_waits_survives_a_rollback_and_a_restart_as_far_as_it_was_committed() -> None:
    app = joined("left_join")
    task = BoundTask(app)
    task.pipe("k", "a", 5, topic="left")
    task.commit_stores()
    task.pipe("k", "aborted", 6, topic="left")
    for store in task.stores.values():
        store.rollback_transaction()
    again = BoundTask(app, stores=task.stores)
    again.pipe("x", "x", 100, topic="right")
    assert results(again) == [("a+None", 5)]


def test_a_restarted_join_finds_what_waits_where_a_window_ends_with_its_record() -> None:
    app = joined("left_join", within=None, before=10, after=0)
    task = BoundTask(app)
    task.pipe("k", "a", 5, topic="left")
    task.commit_stores()
    again = BoundTask(app, stores=task.stores)
    again.pipe("x", "x", 6, topic="left")
    assert results(again) == [("a+None", 5)]


def test_a_restarted_join_knows_how_late_it_is() -> None:
    app = joined("left_join")
    task = BoundTask(app)
    task.pipe("k", "a", 100, topic="right")
    task.commit_stores()
    again = BoundTask(app, stores=task.stores)
    again.pipe("k", "late", 50, topic="left")
    assert results(again) == [("late+None", 50)]


def test_what_waits_is_nobody_elses_object() -> None:
    app = App("a")
    both: Any = {"key": serdes.string, "value": serdes.json}
    left, right = app.stream("left", **both), app.stream("right", **both)
    left.left_join(right, lambda mine, other: [mine, other], within=10, emit_interval=0).to(
        "out", value=serdes.json
    )
    left.for_each(lambda key, value: value.append("spoiled"))
    task = BoundTask(app)
    task.pipe("k", "[1]", 5, topic="left")
    task.pipe("x", "[2]", 50, topic="left")
    assert [value for _, _, value, *_ in task.produced] == [b"[[1],null]"]


def test_where_a_joiner_fails_for_one_that_waits_the_others_go_on() -> None:
    def fussy(value: str | None, other: str | None) -> str:
        if value == "poison":
            raise ValueError("no")
        return pair(value, other)

    task = BoundTask(joined("left_join", joiner=fussy), processing="skip")
    for value in ("a", "poison", "b"):
        task.pipe("k", value, 5, topic="left")
    task.pipe("x", "x", 50, topic="right")
    task.pipe("x", "x", 51, topic="right")
    assert results(task) == [("a+None", 5), ("b+None", 5)]


def test_steps_and_stores_are_named_as_in_kafka_streams() -> None:
    def names(kind: str, **how: Any) -> tuple[list[str], list[str]]:
        [subtopology] = joined(kind, **how).topology().subtopologies
        return [node.name for node in subtopology.nodes][4:6], [
            spec.name for spec in subtopology.stores
        ]

    assert names("left_join", name="j") == (
        ["j-this-join", "j-outer-other-join"],
        ["j-this-join-store", "j-outer-other-join-store", "j-left-shared-join-store"],
    )
    assert names("outer_join", name="j") == (
        ["j-outer-this-join", "j-outer-other-join"],
        ["j-outer-this-join-store", "j-outer-other-join-store", "j-outer-shared-join-store"],
    )
    assert names("outer_join", store=Store.in_memory("mine"), other_store="theirs")[1] == [
        "mine",
        "theirs",
        "mine-outer-shared-join-store",
    ]


def test_the_shared_store_is_kept_as_the_left_sides_is() -> None:
    kept = Store.in_memory("mine", logged=False)
    [subtopology] = joined("left_join", store=kept).topology().subtopologies
    waiting = subtopology.stores[-1]
    assert (waiting.persistent, waiting.logged) == (False, False)
    assert "cleanup.policy" not in waiting.topic_settings


def test_the_shared_store_lies_in_its_changelog_as_kafka_streams_writes_it() -> None:
    task = BoundTask(joined("outer_join", this_value=serdes.string, name="j"))
    task.pipe("k", "a", 258, topic="left")
    task.pipe("k", "bc", 258, topic="left")
    [(key, value, _)] = task.stores["j-outer-shared-join-store"].drain_writes()
    assert key == b"\0\0\0\0\0\0\1\2" + b"\1" + b"k"
    assert value == (b"\1" + b"\0\0\0\2" + b"\0\0\0\2" + b"\1a" + b"\0\0\0\3" + b"\1bc")
    keys = create_timestamped_key_serde(serdes.string)
    values = create_left_or_right_values_serde(serdes.string, serdes.int64)
    assert keys.deserialize(key) == TimestampedKeyAndJoinSide(258, True, "k")
    mixed = [LeftOrRightValue(True, "x"), LeftOrRightValue(False, 7), LeftOrRightValue(True, "")]
    assert values.deserialize(values.serialize(mixed)) == mixed


def test_an_interval_that_can_not_be_is_said() -> None:
    with pytest.raises(TopologyError, match="step 'j': emit_interval can't be negative"):
        joined("left_join", emit_interval=-1, name="j")


def test_the_type_checker_knows_who_may_be_none() -> None:
    app = App("a")
    texts = app.stream("in", key=serdes.string, value=serdes.string)
    numbers = app.stream("numbers", key=serdes.string, value=serdes.int64)
    left = texts.left_join(numbers, lambda text, number: (text, number), within=5)
    assert_type(left, Stream[str, tuple[str, int | None]])
    outer = texts.outer_join(numbers, lambda text, number: (text, number), within=5)
    assert_type(outer, Stream[str, tuple[str | None, int | None]])
