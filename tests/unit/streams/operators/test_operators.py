"""Test operators that are compiled into a task's closures and fed message by message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import (
    App,
    Processor,
    Record,
    SerdeError,
    Store,
    StreamsError,
    TopologyTestDriver,
    serdes,
)
from tests.unit.streams.bound import BoundTask


def through(steps: Callable[[Any], Any]) -> BoundTask:
    app = App("a")
    steps(app.stream("in", key=serdes.string, value=serdes.string)).to("out")
    return BoundTask(app)


NULLABLE: serdes.Serde[str | None] = serdes.string  # type: ignore[assignment]
BOTH = {"key": serdes.string, "value": serdes.string}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda s: s.filter(lambda k, v: v == "b b"), [(b"2", b"b b")]),
        (lambda s: s.filter_not(lambda k, v: v == "b b"), [(b"1", b"a")]),
        (lambda s: s.map(lambda k, v: (v, k), **BOTH), [(b"a", b"1"), (b"b b", b"2")]),
        (lambda s: s.map_values(str.upper), [(b"1", b"A"), (b"2", b"B B")]),
        (lambda s: s.flat_map_values(str.split), [(b"1", b"a"), (b"2", b"b"), (b"2", b"b")]),
        (lambda s: s.flat_map(lambda k, v: [(v, k)] * int(k), **BOTH),
         [(b"a", b"1"), (b"b b", b"2"), (b"b b", b"2")]),
        (lambda s: s.select_key(lambda k, v: v, key=serdes.string),
         [(b"a", b"a"), (b"b b", b"b b")]),
        (lambda s: s.peek(lambda k, v: None), [(b"1", b"a"), (b"2", b"b b")]),
    ],
)  # fmt: skip
def test_each_stateless_step_does_to_records_what_its_name_says(
    steps: Callable[[Any], Any], expected: list[tuple[bytes, bytes]]
) -> None:
    task = through(steps)
    task.pipe("1", "a")
    task.pipe("2", "b b")
    assert task.pairs == expected


def test_timestamp_and_headers_travel_with_the_record() -> None:
    task = through(lambda s: s.map_values(str.upper))
    task.pipe("k", "v", timestamp_ms=42)
    assert task.produced == [("out", b"k", b"V", 42, [("trace", b"1")])]


def test_null_keys_and_values_pass_without_a_serde() -> None:
    task = through(lambda s: s)
    task.pipe(None, None)
    assert task.pairs == [(None, None)]


def test_a_full_queue_is_waited_for_and_the_record_is_not_lost() -> None:
    task = through(lambda s: s)
    task.full_queue_count = 1
    task.pipe("k", "v")
    assert (task.made_room, task.pairs) == (1, [(b"k", b"v")])


def test_for_each_sees_every_record() -> None:
    app, seen = App("a"), []
    app.stream("in", key=serdes.string, value=serdes.string).for_each(
        lambda key, value: seen.append((key, value))
    )
    task = BoundTask(app)
    task.pipe("k", "v")
    assert seen == [("k", "v")]


def counting(store: Store) -> BoundTask:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store=store).to_stream().to("out")
    return BoundTask(app)


def test_a_cached_count_goes_out_once_a_commit_with_its_latest_value_and_largest_time() -> None:
    task = counting(Store.persistent("c"))
    for timestamp_ms in (5, 9, 7):
        task.pipe("k", "v", timestamp_ms)
    assert task.produced == []
    task.flush()
    assert task.produced == [("out", b"k", (3).to_bytes(8, "big"), 9, [("trace", b"1")])]


def test_an_uncached_count_goes_out_with_each_record() -> None:
    task = counting(Store.persistent("c", caching=False))
    for _ in range(3):
        task.pipe("k", "v")
    task.flush()
    assert [int.from_bytes(value, "big") for _, value in task.pairs] == [1, 2, 3]


def test_records_without_key_or_value_are_not_counted() -> None:
    task = counting(Store.persistent("c"))
    task.pipe(None, "v")
    task.pipe("k", None)
    task.flush()
    assert task.produced == []


def test_records_without_a_key_do_not_reach_the_repartition_topic() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by(lambda k, v: None if v == "none" else v, key=NULLABLE).count(store="c")
    task = BoundTask(app)
    task.pipe("1", "none")
    task.pipe("2", "some")
    assert [topic for topic, *_ in task.produced] == ["a-c-repartition"]


def test_a_value_that_cannot_be_read_names_the_step_and_the_record() -> None:
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.int64, name="read").to("out")
    with pytest.raises(SerdeError, match=r"step 'read' can't read in\[0\]@7 .*needs 8 bytes"):
        BoundTask(app).pipe("k", "v")


def test_a_key_that_cannot_be_written_names_the_step_and_the_record() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map(lambda k, v: (7, v), key=serdes.string, value=serdes.string).to("out", name="w")  # type: ignore[arg-type,return-value]
    with pytest.raises(SerdeError, match=r"step 'w' can't write to topic 'out'.*key 7.*in\[0\]@7"):
        BoundTask(app).pipe("k", "v")


def test_a_key_that_the_store_cannot_take_names_the_store() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key(key=serdes.bytes).count(store="c")  # type: ignore[arg-type]
    with pytest.raises(
        StreamsError,
        match=r"step 'KSTREAM-AGGREGATE.* can't process in\[0\]@7: store 'c' can't take key 'k'",
    ):
        BoundTask(app).pipe("k", "v")


@pytest.mark.parametrize("value", ["abc", "ab"])
def test_a_map_that_returns_no_pair_is_told_what_it_returned(value: str) -> None:
    app = App("a")
    text: Any = {"key": serdes.string, "value": serdes.string}
    value_alone: Any = lambda key, value: value  # noqa: E731
    app.stream("in", **text).map(value_alone, **text).to("out")
    message = f"map returns a key and a value, and this one '{value}'"
    with pytest.raises(StreamsError, match=message):
        BoundTask(app).pipe("k", value)


@pytest.mark.parametrize("value", [b"ab", b"abc"])
def test_a_map_that_returns_bytes_is_told_what_it_returned(value: bytes) -> None:
    app = App("a")
    data: Any = {"key": serdes.bytes, "value": serdes.bytes}
    value_alone: Any = lambda key, value: value  # noqa: E731
    app.stream("in", **data).map(value_alone, **data).to("out")
    message = f"map returns a key and a value, and this one {value!r}"
    with pytest.raises(StreamsError, match=message):
        BoundTask(app).pipe(b"k", value)


def test_a_map_may_return_its_pair_as_a_list() -> None:
    app = App("a")
    text: Any = {"key": serdes.string, "value": serdes.string}
    pair_as_list: Any = lambda key, value: [value, key]  # noqa: E731
    app.stream("in", **text).map(pair_as_list, **text).to("out")
    task = BoundTask(app)
    task.pipe("k", "v")
    assert [(key, value) for _, key, value, *_ in task.produced] == [(b"v", b"k")]


def test_what_is_forwarded_is_a_record() -> None:
    class Pairs(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward((record.key, record.value))  # type: ignore[arg-type]

    app = App("a")
    text: Any = {"key": serdes.string, "value": serdes.string}
    app.stream("in", **text).process(Pairs, **text).to("out")
    with pytest.raises(StreamsError, match=r"forward takes a Record.*not \('k', 'v'\)"):
        BoundTask(app).pipe("k", "v")


class Undecided:
    """Represents an answer without a truth: an array, or a missing value of pandas."""

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array is ambiguous")


@pytest.mark.parametrize("name", ["filter", "filter_not"])
def test_an_answer_of_a_predicate_without_a_truth_goes_to_the_processing_handler(
    name: str,
) -> None:
    app = App("a", processing_handler="skip")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    getattr(stream, name)(lambda k, v: v == "b" or Undecided()).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("k", "a"), ("k", "b"), ("k", "c")])
        assert driver.topic("out").read_values() == (["b"] if name == "filter" else [])
        assert driver.dropped == 2
