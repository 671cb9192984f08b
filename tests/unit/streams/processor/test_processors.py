"""Test what processors are given, what they may do, and what they forward downstream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from streams import App, Processor, ProcessorContext, Record, Store, StreamsError, serdes
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}
SEEN = Store.in_memory("seen", key=serdes.string, value=serdes.int64)


class Dedupe(Processor[str, str, str, str]):
    """Forwards a value only the first time that its key occurs."""

    stores: ClassVar[Sequence[str | Store]] = ["seen"]

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.seen = context.store("seen")

    def process(self, record: Record[str, str]) -> None:
        if self.seen.get(record.key) is None:
            self.seen.put(record.key, record.offset, record.timestamp_ms)
            self.context.forward(record)


class Through(Processor[str, str, str, str]):
    """Forwards the result of `change` for each record."""

    def __init__(self, change: Callable[[Record[str, str]], Record[str, str]]) -> None:
        self.change = change

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(self.change(record))


def app_with(steps: Callable[[Any], Any]) -> App:
    app = App("a")
    steps(app.stream("in", key=serdes.string, value=serdes.string)).to("out", name="write")
    return app


def through(change: Callable[[Record[str, str]], Record[str, str]]) -> BoundTask:
    return BoundTask(app_with(lambda s: s.process(lambda: Through(change), **BOTH)))


class Foreign(Processor[str, str, str, str]):
    """Asks its context for a store as in Kafka Streams."""

    def init(self, context: Any) -> None:
        context.getStateStore("seen")


def test_the_contexts_methods_in_kafka_streams_are_said_with_ours() -> None:
    with pytest.raises(StreamsError, match=r"has no 'getStateStore': here it is store\(name\)"):
        BoundTask(app_with(lambda s: s.process(Foreign, **BOTH)))


def test_a_processor_remembers_in_its_store() -> None:
    app = app_with(lambda s: s.process(Dedupe, **BOTH))
    app.add_store(SEEN)
    task = BoundTask(app)
    for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
        task.pipe(key, value)
    assert task.pairs == [(b"a", b"1"), (b"b", b"2")]
    assert task.stores["seen"].get("a") == 7


def test_a_processor_may_bring_its_store() -> None:
    class Own(Dedupe):
        stores = (SEEN,)

    task = BoundTask(app_with(lambda s: s.process(Own, **BOTH)))
    task.pipe("a", "1")
    assert list(task.stores) == ["seen"]


def test_a_record_says_where_it_was_read_and_what_came_with_it() -> None:
    seen: list[Record[str, str]] = []
    task = through(lambda record: seen.append(record) or record)  # type: ignore[func-returns-value]
    task.pipe("k", "v", timestamp_ms=42)
    (record,) = seen
    assert (record.key, record.value, record.timestamp_ms) == ("k", "v", 42)
    assert (record.topic, record.partition, record.offset) == ("in", 0, 7)
    assert record.headers == (("trace", b"1"),)


def test_changes_of_a_record_are_what_reaches_the_sink() -> None:
    task = through(
        lambda record: (
            record.with_key("K").with_value("V").with_timestamp(9).with_headers([("by", b"me")])
        )
    )
    task.pipe("k", "v", timestamp_ms=42)
    assert task.produced == [("out", b"K", b"V", 9, [("by", b"me")])]


def test_headers_stay_with_a_record_whose_value_changes() -> None:
    task = through(lambda record: record.with_value("V"))
    task.pipe("k", "v", timestamp_ms=42)
    assert task.produced == [("out", b"k", b"V", 42, [("trace", b"1")])]


def test_other_headers_are_for_what_was_forwarded_with_them_only() -> None:
    class Twice(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.with_headers([("by", b"me")]))
            self.context.forward(record)
            self.context.forward(Record("new", "made", 5))

    task = BoundTask(app_with(lambda s: s.process(Twice, **BOTH).map_values(str.upper)))
    task.pipe("k", "v", timestamp_ms=1)
    assert task.produced == [
        ("out", b"k", b"V", 1, [("by", b"me")]),
        ("out", b"k", b"V", 1, [("trace", b"1")]),
        ("out", b"new", b"MADE", 5, []),
    ]


def test_a_processor_behind_another_is_handed_the_headers_that_it_was_given() -> None:
    seen: list[Any] = []

    def look(record: Record[str, str]) -> Record[str, str]:
        seen.append((record.headers, record.topic, record.offset))
        return record

    def name(record: Record[str, str]) -> Record[str, str]:
        return record.with_headers([("by", b"me")])

    app = app_with(
        lambda s: s.process(lambda: Through(name), **BOTH).process(lambda: Through(look), **BOTH)
    )
    task = BoundTask(app)
    task.pipe("k", "v")
    assert seen == [((("by", b"me"),), "in", 7)]
    assert task.produced[0][4] == [("by", b"me")]


def test_a_record_can_be_sent_to_one_of_the_next_steps() -> None:
    class Sort(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record, to="big" if len(record.value) > 3 else "small")

    app = App("a")
    sorted_ = app.stream("in", **BOTH).process(Sort, **BOTH, name="sort")
    sorted_.to("big-ones", name="big")
    sorted_.to("small-ones", name="small")
    task = BoundTask(app)
    task.pipe("1", "abcdef")
    task.pipe("2", "x")
    assert [(topic, key) for topic, key, *_ in task.produced] == [
        ("big-ones", b"1"),
        ("small-ones", b"2"),
    ]


def test_a_step_that_does_not_follow_cannot_be_forwarded_to() -> None:
    class Lost(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record, to="nowhere")

    task = BoundTask(app_with(lambda s: s.process(Lost, **BOTH, name="lost")))
    with pytest.raises(StreamsError, match=r"'lost' can't forward to 'nowhere'.*\['write'\]"):
        task.pipe("k", "v")


def test_a_store_that_is_not_named_is_refused() -> None:
    class Curious(Dedupe):
        stores = ()

    app = app_with(lambda s: s.process(Curious, **BOTH, name="curious"))
    with pytest.raises(StreamsError, match=r"'curious' has no store 'seen': name it in"):
        BoundTask(app)


def test_stores_can_be_named_beside_the_class() -> None:
    class Plain(Dedupe):
        stores = ()

    app = app_with(lambda s: s.process(Plain, **BOTH, stores=["seen"]))
    app.add_store(SEEN)
    assert list(BoundTask(app).stores) == ["seen"]


class Expiring(Processor[str, str, str, str]):
    """Forwards the time at intervals of the stream clock and of the wall clock."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.ends = [
            context.schedule(timedelta(minutes=1), self.say),
            context.schedule(500, self.say, clock="wall"),
        ]

    def say(self, now_ms: int) -> None:
        assert self.context.record_metadata is None
        self.context.forward(Record("now", str(now_ms), now_ms))

    def process(self, record: Record[str, str]) -> None:
        for end in self.ends:
            end()


def test_punctuations_are_scheduled_forward_and_end() -> None:
    task = BoundTask(app_with(lambda s: s.process(Expiring, **BOTH)))
    assert [(interval, clock) for interval, clock, _ in task.scheduled] == [
        (60_000, "stream"),
        (500, "wall"),
    ]
    task.punctuate(3)
    assert task.produced == [("out", b"now", b"3", 3, [])] * 2
    task.pipe("k", "v")
    assert task.scheduled == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 0}, "at least 1 ms"),
        ({"interval": -1}, "can't be negative"),
        ({"interval": "1s"}, "neither milliseconds nor a timedelta"),
        ({"interval": 1, "clock": "sun"}, "neither 'stream' nor 'wall'"),
    ],
)
def test_a_schedule_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    class Odd(Processor):
        def init(self, context: ProcessorContext[Any, Any]) -> None:
            context.schedule(callback=print, **arguments)

    with pytest.raises(StreamsError, match=f"step 'odd' can't be initialised.*{message}"):
        BoundTask(app_with(lambda s: s.process(Odd, **BOTH, name="odd")))


def test_each_task_has_a_processor_of_its_own_started_upstream_first_and_closed() -> None:
    calls: list[str] = []

    class Noted(Through):
        def __init__(self, name: str) -> None:
            super().__init__(lambda record: record)
            self.name = name

        def init(self, context: ProcessorContext[str, str]) -> None:
            calls.append(f"init {self.name} {context.task_id}")

        def close(self) -> None:
            calls.append(f"close {self.name}")

    app = app_with(
        lambda s: s.process(lambda: Noted("first"), **BOTH).process(lambda: Noted("second"), **BOTH)
    )
    task = BoundTask(app)
    task.close()
    assert calls == ["init first 0_0", "init second 0_0", "close first", "close second"]


def test_a_processor_can_ask_for_a_commit_and_for_the_stream_time() -> None:
    class Asking(Processor[str, str, str, int]):
        def process(self, record: Record[str, str]) -> None:
            self.context.commit()
            self.context.forward(record.with_value(self.context.stream_time_ms))

    app = app_with(lambda s: s.process(Asking, key=serdes.string, value=serdes.int64))
    task = BoundTask(app)
    task.stream_time_ms = 11
    task.pipe("k", "v")
    assert task.commits_asked == 1
    assert task.pairs == [(b"k", (11).to_bytes(8, "big"))]


def test_what_a_processor_forwards_may_need_a_repartition_and_fixed_keys_need_none() -> None:
    cases: list[tuple[Callable[[Any], Any], set[str]]] = [
        (lambda s: s.process(Dedupe, **BOTH), {"a-c-repartition"}),
        (lambda s: s.process_values(Dedupe), set()),
    ]
    for steps, topics in cases:
        app = App("a")
        app.add_store(SEEN)
        steps(app.stream("in", **BOTH)).group_by_key().count(store="c")
        assert app.topology().repartition_topics == topics


def test_a_processor_of_values_cannot_change_the_key() -> None:
    app = app_with(
        lambda s: s.process_values(lambda: Through(lambda r: r.with_key("other")), name="keep")
    )
    with pytest.raises(StreamsError, match=r"'keep' forwards the key 'other'.* the key 'k'"):
        BoundTask(app).pipe("k", "v")


def test_nor_of_what_a_commit_brings_but_what_a_timer_forwards_has_any_key() -> None:
    class Ticking(Through):
        def init(self, context: ProcessorContext[str, Any]) -> None:
            context.schedule(1, lambda now_ms: context.forward(Record("any", "tick", now_ms)))

    app = App("a")
    counts = app.stream("in", **BOTH).group_by_key().count(store="c").to_stream()
    changing: Any = lambda: Ticking(lambda record: record.with_key("other"))  # noqa: E731
    counts.process_values(changing, name="keep", value=serdes.string).to("out")
    task = BoundTask(app)
    task.pipe("k", "v")
    task.punctuate(5)
    assert task.pairs == [(b"any", b"tick")]
    with pytest.raises(StreamsError, match=r"'keep' forwards the key 'other'.* the key 'k'"):
        task.flush()


def test_two_processors_share_a_store_and_so_a_sub_topology() -> None:
    app = App("a")
    app.add_store(SEEN)
    for topic in ("x", "y"):
        app.stream(topic, **BOTH).process(Dedupe, **BOTH).to(f"{topic}-out")
    task = BoundTask(app)
    assert len(app.topology().subtopologies) == 1
    task.pipe("k", "first", topic="x")
    task.pipe("k", "second", topic="y")
    assert task.pairs == [(b"k", b"first")]


def test_a_processor_reads_the_store_of_a_table() -> None:
    class Reader(Processor[str, str, str, int]):
        stores = ("counts",)

        def process(self, record: Record[str, str]) -> None:
            counted = self.context.store("counts").get(record.key)
            self.context.forward(record.with_value(counted or 0))

    app = App("a")
    app.stream("in", **BOTH).group_by_key().count(store="counts")
    asked = app.stream("ask", **BOTH).process(Reader, key=serdes.string, value=serdes.int64)
    asked.to("answers")
    task = BoundTask(app)
    task.pipe("k", "v", topic="in")
    task.pipe("k", "?", topic="ask")
    assert task.pairs == [(b"k", (1).to_bytes(8, "big"))]


def test_a_timestamp_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="can't be negative: -1"):
        Record("k", "v", 1).with_timestamp(-1)


def test_records_of_the_same_content_are_equal() -> None:
    record = Record("k", "v", 1, [("a", b"1")])
    assert record == Record("k", "x", 1, [("a", b"1")]).with_value("v")
    assert record != record.with_headers([])
    assert repr(record) == "<Record 'k': 'v' at 1>"


class ChangesRecords(Processor[str, str, str, str]):
    """Assigns to its record before it forwards it, and after that."""

    def process(self, record: Record[str, str]) -> None:
        record.value += "!"
        self.context.forward(record)
        record.value = "too late"


def test_a_record_that_a_processor_has_assigned_to_is_its_own() -> None:
    app = App("a")
    lines = app.stream("in", **BOTH)
    lines.process(ChangesRecords, **BOTH).process(ChangesRecords, **BOTH).to("changed")
    lines.process(ChangesRecords, **BOTH).to("once")
    lines.to("plain")
    task = BoundTask(app)
    task.pipe("k", "v")
    assert [value for _, value in task.pairs] == [b"v!!", b"v!", b"v"]
