"""Test topologies that are described step by step, beside the DSL and mixed with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Processor, Record, Store, TopologyTestDriver, serdes
from streams.dsl.topology_builder import TopologyBuilder
from streams.errors import StreamsError, TopologyError

TEXT: Any = {"key": serdes.string, "value": serdes.string}


class Words(Processor[str, str, str, str]):
    """Forwards long words to `long`, and each word to `all`."""

    def process(self, record: Record[str, str]) -> None:
        for word in record.value.split():
            if len(word) > 3:
                self.context.forward(record.with_value(word), to="long")
            self.context.forward(record.with_key(word).with_value(word), to="count")


class Count(Processor[str, str, str, int]):
    """Counts records by key in the store `counts`, and requests a commit."""

    def process(self, record: Record[str, str]) -> None:
        counts = self.context.store("counts")
        counts.put(record.key, (counts.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(counts.get(record.key)))
        self.context.commit()


def count_store() -> Store:
    return Store.persistent("counts", key=serdes.string, value=serdes.int64)


def build_word_count() -> App:
    app = App("words")
    (
        app.topology_builder()
        .add_source("lines", "in", "more", **TEXT)
        .add_processor("split", Words, "lines")
        .add_processor("count", Count, "split")
        .add_store(count_store(), "count")
        .add_sink("long", "long-words", "split", **TEXT)
        .add_sink("out", "counted", "count", key=serdes.string, value=serdes.int64)
    )
    return app


def test_records_go_to_the_child_that_is_named_and_to_all_otherwise() -> None:
    with TopologyTestDriver(build_word_count()) as driver:
        driver.topic("in").pipe("k", "to be or not to believe")
        driver.topic("more").pipe("k", "to")
        assert driver.topic("long-words").read_pairs() == [("k", "believe")]
        assert driver.topic("counted").read_table() == {
            "to": 3, "be": 1, "or": 1, "not": 1, "believe": 1,
        }  # fmt: skip
        driver.crash()
        driver.restart()
        assert driver.store("counts").get("to") == 3


def test_the_description_has_the_steps_by_their_names() -> None:
    assert build_word_count().describe().splitlines() == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: lines-in (topics: [in])",
        "      --> lines",
        "    Source: lines-more (topics: [more])",
        "      --> lines",
        "    Processor: lines (stores: [])",
        "      --> split",
        "      <-- lines-in, lines-more",
        "    Processor: split (stores: [])",
        "      --> count, long",
        "      <-- lines",
        "    Processor: count (stores: [counts])",
        "      --> out",
        "      <-- split",
        "    Sink: long (topic: long-words)",
        "      <-- split",
        "    Sink: out (topic: counted)",
        "      <-- count",
    ]


def test_steps_of_the_dsl_and_of_the_builder_follow_each_other() -> None:
    app = App("mixed")
    upper = app.stream("in", **TEXT).map_values(str.upper, name="upper")
    builder = app.topology_builder().add_processor("count", Count, "upper", stores=[count_store()])
    builder.add_processor("again", Words, upper)
    counted = builder.stream("count", key=serdes.string, value=serdes.int64)
    counted.filter(lambda _, count: count > 1).to("often")
    builder.add_sink("long", "long", "again", **TEXT).add_sink("count-2", "words", "again", **TEXT)
    assert len(app.topology().subtopologies) == 1
    with (
        pytest.raises(StreamsError, match="can't forward to 'count'"),
        TopologyTestDriver(app) as driver,
    ):
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
    with_fixed = App("mixed")
    with_fixed.stream("in", **TEXT).map_values(str.upper, name="upper")
    builder = with_fixed.topology_builder()
    builder.add_processor("count", Count, "upper", stores=[count_store()])
    counted = builder.stream("count", key=serdes.string, value=serdes.int64)
    counted.group_by_key().reduce(max, store="largest").to_stream().to("often")
    assert "mixed-largest-repartition" in with_fixed.topology().repartition_topics
    with TopologyTestDriver(with_fixed) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y"), ("b", "z")])
        assert driver.topic("often").read_pairs() == [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize("method", ["process", "process_values"])
@pytest.mark.parametrize("is_declared_with_it", [True, False])
def test_a_processor_of_the_dsl_may_use_a_store_that_is_connected_later(
    method: str, is_declared_with_it: bool
) -> None:
    app = App("mixed")
    counted = getattr(app.stream("in", **TEXT), method)(Count, value=serdes.int64, name="count")
    counted.map(lambda key, value: (key, value), key=serdes.string, value=serdes.int64).to("out")
    builder = app.topology_builder()
    if is_declared_with_it:
        builder.add_store(count_store(), "count")
    else:
        builder.add_store(count_store()).connect_processor_and_stores("count", "counts")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
        assert driver.topic("out").read_pairs() == [("a", 1), ("a", 2)]
        driver.crash()
        driver.restart()
        assert driver.store("counts").get("a") == 2


class Discount(Processor[str, int, str, int]):
    """Keeps half of each price, and how many prices there were."""

    def process(self, record: Record[str, int]) -> None:
        store = self.context.store("discounts")
        if record.value is None:
            store.delete(record.key)
            return
        store.put(record.key, f"{record.value // 2}")
        store.put("count", str(int(store.get("count") or 0) + 1))


class LookUp(Processor[str, str, str, str]):
    """Forwards what the global store has of the record's value."""

    def process(self, record: Record[str, str]) -> None:
        found = self.context.store("discounts").get(record.value)
        self.context.forward(record.with_value(found or "none"))


def build_discounts(**settings: Any) -> App:
    app = App("discounts", **settings)
    store = Store.persistent("discounts", key=serdes.string, value=serdes.string)
    builder = app.topology_builder()
    builder.add_global_store(store, "prices", Discount, value=serdes.int64)
    builder.add_source("in", "in", **TEXT).add_processor("look-up", LookUp, "in")
    builder.add_sink("out", "out", "look-up", **TEXT)
    return app


def test_a_processor_fills_a_global_store_and_every_task_reads_it() -> None:
    with TopologyTestDriver(build_discounts(), partitions={"in": 2, "prices": 2}) as driver:
        driver.topic("prices").pipe_many([("pen", 10), ("ink", 30), ("pen", 20)])
        driver.topic("in").pipe_many([("a", "pen"), ("b", "ink"), ("c", "cap")])
        assert sorted(driver.topic("out").read_pairs()) == [
            ("a", "10"), ("b", "15"), ("c", "none"),
        ]  # fmt: skip
        driver.crash()
        driver.topic("prices").pipe_many([("ink", None), ("cap", 4)])
        driver.restart()
        assert dict(driver.store("discounts").all()) == {"count": "4", "pen": "10", "cap": "2"}


@pytest.mark.parametrize("is_named", [True, False])
def test_the_processor_of_a_global_store_may_name_it_and_no_other(is_named: bool) -> None:
    store = Store.persistent("discounts", key=serdes.string, value=serdes.string)

    class Own(Discount):
        stores = ("discounts",) if is_named else (store,)

    class More(Discount):
        stores = (store, "more") if is_named else (store, count_store())

    app = App("discounts")
    with pytest.raises(TopologyError, match=r"can use no other: take .* out of the stores of its"):
        app.topology_builder().add_global_store(store, "prices", More, value=serdes.int64)
    app = App("discounts")
    app.stream("in", **TEXT).to("out")
    app.topology_builder().add_global_store(store, "prices", Own, value=serdes.int64)
    with TopologyTestDriver(app) as driver:
        driver.topic("prices").pipe("pen", 10)
        assert driver.store("discounts").get("pen") == "5"


def test_a_global_store_that_is_made_anew_gets_all_records_again_through_its_processor() -> None:
    app = App("discounts")
    store = Store.in_memory("discounts", key=serdes.string, value=serdes.string)
    app.topology_builder().add_global_store(store, "prices", Discount, value=serdes.int64)
    app.stream("in", **TEXT).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("prices").pipe_many([("pen", 10), ("pen", 20)])
        driver.crash()
        driver.restart()
        assert dict(driver.store("discounts").all()) == {"count": "2", "pen": "10"}


def test_a_record_at_which_the_processor_of_a_global_store_fails_is_for_the_handler() -> None:
    class Fail(Discount):
        def process(self, record: Record[str, int]) -> None:
            if record.key == "bad":
                self.context.forward(record)
            super().process(record)

    def build(**settings: Any) -> App:
        app = App("discounts", **settings)
        store = Store.persistent("discounts", key=serdes.string, value=serdes.string)
        app.topology_builder().add_global_store(store, "prices", Fail, value=serdes.int64)
        app.stream("in", **TEXT).to("out")
        return app

    with TopologyTestDriver(build(processing_handler="skip")) as driver:
        driver.topic("prices").pipe_many([("bad", 10), ("pen", 10)])
        assert dict(driver.store("discounts").all()) == {"count": "1", "pen": "5"}
        assert driver.dropped == 1
    with (
        TopologyTestDriver(build()) as driver,
        pytest.raises(StreamsError, match="no step follows"),
    ):
        driver.topic("prices").pipe("bad", 10)


class Price(Processor[str, str, str, int]):
    """Forwards the price of what a record names."""

    stores = ("prices",)

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(self.context.store("prices").get(record.key)))


def test_a_read_only_store_has_the_rows_of_its_topic_and_no_changelog() -> None:
    app = App("prices")
    store = Store.persistent("prices", key=serdes.string, value=serdes.int64)
    builder = app.topology_builder().add_read_only_store(store, "prices")
    builder.add_source("in", "in", **TEXT).add_processor("price", Price, "in")
    builder.add_sink("out", "out", "price", key=serdes.string, value=serdes.int64)
    topology = app.topology()
    assert topology.restore_topic_of("prices") == "prices"
    with TopologyTestDriver(app, partitions={"in": 2, "prices": 2}) as driver:
        assert not [topic for topic in driver.topics if topic.endswith("-changelog")]
        driver.topic("prices").pipe_many([("pen", 10), ("ink", 30), ("pen", 20)])
        driver.topic("in").pipe_many([("pen", "x"), ("ink", "x"), ("cap", "x")])
        assert driver.topic("out").read_table() == {"pen": 20, "ink": 30}
        driver.crash()
        driver.restart()
        driver.topic("in").pipe("pen", "x")
        assert driver.topic("out").read_pairs()[-1] == ("pen", 20)


def test_a_read_only_store_has_the_times_of_its_topic_before_and_after_a_restore() -> None:
    class Times(Price):
        def process(self, record: Record[str, str]) -> None:
            row = self.context.store("prices").entry(record.key)
            self.context.forward(record.with_value(row.timestamp_ms))

    app = App("prices", default_timestamp_extractor=lambda record: record.timestamp_ms + 1_000)
    store = Store.in_memory("prices", key=serdes.string, value=serdes.int64)
    builder = app.topology_builder().add_read_only_store(store, "prices")
    builder.add_source("in", "in", **TEXT).add_processor("time", Times, "in")
    builder.add_sink("out", "out", "time", key=serdes.string, value=serdes.int64)
    with TopologyTestDriver(app) as driver:
        driver.topic("prices").pipe("pen", 10, timestamp_ms=5)
        driver.topic("in").pipe("pen", "x", timestamp_ms=5)
        driver.crash()
        driver.restart()
        driver.topic("in").pipe("pen", "x", timestamp_ms=6)
        assert driver.topic("out").read_pairs() == [("pen", 5), ("pen", 5)]


@pytest.mark.parametrize("is_refused", ["the key", "the value"])
def test_a_record_that_the_handler_skips_is_in_no_read_only_store_also_after_a_restore(
    is_refused: str,
) -> None:
    class Show(Processor[str, str, str, str]):
        stores = ["prices"]  # noqa: RUF012  what a user types

        def process(self, record: Record[str, str]) -> None:
            rows = self.context.store("prices").all()
            self.context.forward(record.with_value(" ".join(f"{k}={v}" for k, v in rows)))

    app = App("prices", deserialization_handler="skip")
    store = Store.persistent("prices", key=serdes.string, value=serdes.int64)
    builder = app.topology_builder().add_read_only_store(store, "prices")
    builder.add_source("in", "in", **TEXT).add_processor("show", Show, "in")
    builder.add_sink("out", "out", "show", **TEXT)
    with TopologyTestDriver(app) as driver:
        unchecked = driver.topic("prices", key=serdes.bytes, value=serdes.bytes)
        driver.topic("prices").pipe_many([("pen", 10), ("ink", 30), ("ink", None)])
        if is_refused == "the key":
            unchecked.pipe(b"\xff", bytes(8))
        else:
            unchecked.pipe_many([(b"pen", b"much"), (b"cap", b"much")])
        driver.topic("in").pipe("a", "?")
        driver.crash()
        driver.restart()
        driver.topic("in").pipe("a", "?")
        assert driver.topic("out").read_values() == ["pen=10", "pen=10"]


def test_a_read_only_store_can_not_be_written() -> None:
    class Write(Price):
        def process(self, record: Record[str, str]) -> None:
            self.context.store("prices").put(record.key, 1)

    app = App("prices")
    store = Store.persistent("prices", key=serdes.string, value=serdes.int64)
    builder = app.topology_builder().add_read_only_store(store, "prices")
    builder.add_source("in", "in", **TEXT).add_processor("price", Write, "in")
    with (
        TopologyTestDriver(app) as driver,
        pytest.raises(StreamsError, match="add_read_only_store"),
    ):
        driver.topic("in").pipe("pen", "x")


def test_a_processor_knows_stream_time_and_the_wall_clock() -> None:
    class Times(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            times = f"{self.context.stream_time_ms} {self.context.system_time_ms}"
            self.context.forward(record.with_value(times))

    app = App("times")
    app.stream("in", **TEXT).process_values(Times).to("out")
    with TopologyTestDriver(app, start_ms=1_000) as driver:
        driver.topic("in").pipe("a", "x", timestamp_ms=50)
        driver.advance_wall_clock(5)
        driver.topic("in").pipe("a", "x", timestamp_ms=20)
        assert driver.topic("out").read_values() == ["50 1000", "50 1005"]


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (lambda b: b.add_source("s"), "step 's' reads no topic"),
        (lambda b: b.add_source("s", "in"), "step 's' needs a key serde"),
        (lambda b: b.add_processor("p", Words), "step 'p' has no parents"),
        (
            lambda b: b.add_processor("p", Words, "q"),
            "names the step 'q', which has not been",
        ),
        (lambda b: b.add_processor("p", Words, 7), "neither the name of a step nor a stream"),
        (lambda b: b.add_processor("p", Words(), "in"), "each task needs one of its own"),
        (lambda b: b.add_processor("p", Words, "sink"), "'sink' is a sink, and nothing follows it"),
        (lambda b: b.add_processor("p", Words, "rows"), "'rows' is a table"),
        (lambda b: b.add_processor("in", Words, "in"), "step 'in' is used twice"),
        (lambda b: b.add_sink("s", "a b", "in", **TEXT), "step 's': 'a b' is not a topic's name"),
        (lambda b: b.add_sink("s", "x", "in", key=None, value=None), "step 's' needs a key serde"),
        (lambda b: b.add_store("counts"), "add_store takes a Store, got 'counts'"),
        (lambda b: b.connect_processor_and_stores("in", "counts"), "'in' runs no processor"),
        (lambda b: b.connect_processor_and_stores("split"), "name the stores to connect"),
        (
            lambda b: b.connect_processor_and_stores("split", "x"),
            "uses the store 'x', which no",
        ),
        (lambda b: b.connect_processor_and_stores("split", count_store()), "is no store's name"),
        (
            lambda b: b.add_global_store(
                Store.window("w", size=1, retention=1, **TEXT), "prices", Discount
            ),
            "needs a key-value store, and 'w' is a window store",
        ),
        (
            lambda b: b.add_global_store(Store.persistent("w", **TEXT), "in", Discount),
            "topic 'in' is read by two steps",
        ),
        (
            lambda b: b.add_read_only_store(Store.persistent("w", **TEXT, ttl=5), "prices"),
            "it can have no ttl=",
        ),
    ],
)
def test_a_mistake_is_told_with_the_step(
    describe: Callable[[TopologyBuilder], object], message: str
) -> None:
    app = App("mistakes")
    app.table("rows", **TEXT, store="rows", name="rows")
    builder = app.topology_builder().add_source("in", "in", **TEXT)
    builder.add_processor("split", Words, "in").add_sink("sink", "out", "split", **TEXT)

    def describe_and_build() -> None:
        describe(builder)
        app.topology()

    with pytest.raises(TopologyError) as caught:
        describe_and_build()
    assert message in str(caught.value)
