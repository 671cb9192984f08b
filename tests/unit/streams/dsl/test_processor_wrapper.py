"""Test that a processor wrapper is handed each step, as in Kafka Streams 4.4 (KIP-1112)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Processor, Record, Store, TopologyTestDriver, ValueTransformer, serdes
from streams.common.changes import Change
from streams.errors import StreamsError, TopologyError
from streams.runtime.offsets.missed_deletions import list_table_stores_by_topic

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
Wrapper = Callable[[str, Callable[[], Any]], Any]
OnRecord = Callable[[str, Record[Any, Any]], Record[Any, Any]]


class Pass(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class Keep(ValueTransformer[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        return value


def create_wrapper(on_record: OnRecord, added_stores: tuple[str | Store, ...] = ()) -> Wrapper:
    """Return a wrapper whose processors hand on what `on_record` makes of a record."""

    def wrap(step: str, create_processor: Callable[[], Any]) -> Any:
        class Wrapped(Processor[Any, Any, Any, Any]):
            def __init__(self) -> None:
                self.inner = create_processor()
                self.stores = (*self.inner.stores, *added_stores)  # type: ignore[misc]

            def init(self, context: Any) -> None:
                self.inner.context = context
                self.inner.init(context)

            def process(self, record: Record[Any, Any]) -> None:
                self.inner.process(on_record(step, record))

        return Wrapped

    return wrap


def describe_many_steps(app: App) -> None:
    """Describe what was described in Java for the names below."""
    stream, rows = app.stream("in", **TEXT), app.table("rows", **TEXT)
    other = app.table("others", **TEXT, store="others")
    everywhere = app.global_table("everywhere", **TEXT)
    mapped = stream.filter(lambda k, v: True).map_values(str).peek(lambda k, v: None)
    mapped = mapped.map(lambda k, v: (k, v), **TEXT, name="my-map")
    mapped.join(rows, lambda a, b: a, value=serdes.string).to("o1")
    stream.left_join(everywhere, lambda a, b: a, key=lambda k, v: k, value=serdes.string).to("o2")
    mapped.group_by_key().count(store="cnt").to_stream().for_each(lambda k, v: None)
    rows.join(other, lambda a, b: a, value=serdes.string).to_stream().to("o3")
    rows.filter(lambda k, v: True).transform_values(Keep)
    rows.group_by(lambda k, v: (k, v), **TEXT).count()
    stream.merge(stream).select_key(lambda k, v: k, key=serdes.string).to_table()
    stream.process(Pass, **TEXT).process_values(Pass)


def test_a_wrapper_is_handed_the_steps_that_are_processors_in_kafka_streams() -> None:
    names: list[str] = []

    def wrap(step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
        names.append(re.sub(r"-\d{10}", "", step))
        return create_processor

    app = App("wrapped", processor_wrapper=wrap)
    describe_many_steps(app)
    builder = app.topology_builder().add_source("s", "a", "b", **TEXT)
    builder.add_processor("pass", Pass, "s")
    builder.add_global_store(Store.persistent("g", **TEXT), "global", Pass)
    builder.add_read_only_store(Store.persistent("r", **TEXT), "read-only")
    app.topology()
    assert names == [
        *("KSTREAM-PROCESSOR", "KSTREAM-PROCESSOR", "pass"),  # as they are described
        *("KTABLE-SOURCE", "KTABLE-SOURCE", "KSTREAM-FILTER", "KSTREAM-MAPVALUES", "KSTREAM-PEEK"),
        *("my-map", "my-map-repartition-filter", "KSTREAM-JOIN", "KSTREAM-LEFTJOIN"),
        *("cnt-repartition-filter", "KSTREAM-AGGREGATE", "KTABLE-TOSTREAM", "KSTREAM-FOREACH"),
        *("KTABLE-JOINTHIS", "KTABLE-JOINOTHER", "KTABLE-MERGE", "KTABLE-TOSTREAM"),
        *("KTABLE-FILTER", "KTABLE-TRANSFORMVALUES", "KTABLE-SELECT", "KTABLE-AGGREGATE"),
        *("KSTREAM-MERGE", "KSTREAM-KEY-SELECT"),
        *("KSTREAM-TOTABLE-repartition-filter", "KSTREAM-TOTABLE"),
    ]
    app.topology()
    assert len(names) == 28, "it is called once for a step, however often the topology is built"


def test_a_step_in_a_wrapper_takes_records_and_updates_of_tables() -> None:
    seen: list[tuple[str, Any]] = []

    def note(step: str, record: Record[Any, Any]) -> Record[Any, Any]:
        seen.append((step, record.value))
        return record

    app = App("wrapped", processor_wrapper=create_wrapper(note))
    stream = app.stream("in", **TEXT).filter(lambda k, v: v != "", name="full")
    table = stream.group_by_key().reduce(lambda old, new: old + new, store="sums", name="sum")
    table.to_stream(name="out-stream").to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", ""), ("a", "y")])
        assert driver.topic("out").read_pairs() == [("a", "x"), ("a", "xy")]
    assert seen == [
        *(("full", "x"), ("sum", "x"), ("out-stream", Change("x", None))),
        ("full", ""),
        *(("full", "y"), ("sum", "y"), ("out-stream", Change("xy", None))),
    ]


def test_a_wrapper_may_change_records_for_the_step() -> None:
    def change(step: str, record: Record[Any, Any]) -> Record[Any, Any]:
        if step == "upper":
            return record.with_value(f"{record.value}!").with_headers([("by", b"wrapper")])
        return record

    app = App("wrapped", processor_wrapper=create_wrapper(change))
    app.stream("in", **TEXT).map_values(str.upper, name="upper").to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "x", timestamp_ms=7)
        (written,) = driver.topic("out").read_all()
        assert (written.value, written.timestamp_ms) == ("X!", 7)
        assert written.headers == (("by", b"wrapper"),)


def test_a_wrapper_may_put_a_context_of_its_own_around_that_of_a_step() -> None:
    forwarded: list[tuple[str, Any]] = []

    class Watched:
        def __init__(self, step: str, context: Any) -> None:
            self.step, self.context = step, context

        def __getattr__(self, name: str) -> Any:
            return getattr(self.context, name)

        def forward(self, record: Record[Any, Any], to: str | None = None) -> None:
            forwarded.append((self.step, record.value))
            self.context.forward(record, to)

    def wrap(step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
        class Watching(Processor[Any, Any, Any, Any]):
            def init(self, context: Any) -> None:
                self.inner = create_processor()
                self.inner.context = Watched(step, context)
                self.inner.init(self.inner.context)

            def process(self, record: Record[Any, Any]) -> None:
                self.inner.process(record)

        return Watching

    app = App("wrapped", processor_wrapper=wrap)
    split = app.stream("in", **TEXT).split({"x": lambda k, v: v == "x"}, default="rest", name="by")
    split["x"].to("x")
    split["rest"].process_values(Pass, name="pass").to("rest")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
        assert driver.topic("x").read_values() == ["x"]
        assert driver.topic("rest").read_values() == ["y"]
    assert forwarded == [
        *(("by", "x"), ("by-x", "x")),
        *(("by", "y"), ("by-rest", "y"), ("pass", "y")),
    ]


def test_a_wrapper_may_add_a_store_that_all_steps_share() -> None:
    calls = Store.persistent("calls", key=serdes.string, value=serdes.int64)

    def wrap(step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
        class Counted(Processor[Any, Any, Any, Any]):
            stores = [calls]  # noqa: RUF012  what a user types

            def init(self, context: Any) -> None:
                self.calls = context.store("calls")
                self.inner = create_processor()
                self.inner.context = context
                self.inner.init(context)

            def process(self, record: Record[Any, Any]) -> None:
                self.calls.put(step, (self.calls.get(step) or 0) + 1)
                self.inner.process(record)

        return Counted

    app = App("wrapped", processor_wrapper=wrap)
    app.stream("in", **TEXT).filter(lambda k, v: v != "y", name="no-y").to("out")
    app.stream("in-2", **TEXT).map_values(str.upper, name="upper").to("out")
    assert len(app.topology().subtopologies) == 1, "a store that steps share connects them"
    with TopologyTestDriver(app, partitions={"in": 2, "in-2": 3}) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
        driver.topic("in-2").pipe("a", "z")
        assert driver.topic("out").read_values() == ["x", "Z"]
        driver.crash()
        driver.restart()
        assert dict(driver.store("calls").all()) == {"no-y": 2, "upper": 1}


def test_without_a_wrapper_steps_stay_the_functions_that_they_are() -> None:
    app, wrapped = App("plain"), App("wrapped", processor_wrapper=create_wrapper(lambda s, r: r))
    for each in (app, wrapped):
        each.stream("in", **TEXT).filter(lambda k, v: True, name="all").to("out")

    def find_operator(of: App) -> str:
        nodes = {node.name: node for node in of.topology().subtopologies[0].nodes}
        return str(nodes["all"].operator.__module__)  # type: ignore[attr-defined]

    assert find_operator(app) == "streams.operators.filter"
    assert find_operator(wrapped) == "streams.operators.wrapped_step"


def run_with(on_record: OnRecord, describe: Callable[[App], object]) -> None:
    """Pipe a record through an application whose wrapper makes a mistake."""
    app = App("mistakes", processor_wrapper=create_wrapper(on_record))
    describe(app)
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "x")


@pytest.mark.parametrize(
    ("on_record", "message"),
    [
        (lambda step, record: 5, "process takes a Record, not 5"),
        (
            lambda step, record: record.with_key("b"),
            "'all' forwards the key 'b' for a record with the key 'a': the step keeps keys as",
        ),
    ],
)
def test_a_mistake_of_a_wrapper_at_a_stream_is_told_with_the_step(
    on_record: OnRecord, message: str
) -> None:
    with pytest.raises(StreamsError, match=re.escape(message)):
        run_with(
            on_record,
            lambda app: app.stream("in", **TEXT).filter(lambda k, v: True, name="all").to("out"),
        )


def test_a_wrapper_that_hands_a_table_no_change_is_told_what_to_hand() -> None:
    def replace_value(step: str, record: Record[Any, Any]) -> Record[Any, Any]:
        return record.with_value("x") if step == "rows" else record

    with pytest.raises(StreamsError, match=r"'rows' takes updates of a table, whose value is a Ch"):
        run_with(
            replace_value,
            lambda app: app.table("in", **TEXT).to_stream(name="rows").to("out"),
        )


def test_a_wrapper_that_forwards_no_change_of_a_table_is_told_what_to_forward() -> None:
    class Replaced(Processor[Any, Any, Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record)

    app = App("mistakes", processor_wrapper=lambda step, create_processor: Replaced)
    app.table("in", **TEXT, name="rows").to_stream().to("out")
    with (
        TopologyTestDriver(app) as driver,
        pytest.raises(StreamsError, match=r"'rows' is a table's, and forwards a Change as value"),
    ):
        driver.topic("in").pipe("a", "x")


def test_a_step_whose_processor_is_not_initialised_says_who_must_do_it() -> None:
    def wrap(step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
        class Forgets(Processor[Any, Any, Any, Any]):
            def process(self, record: Record[Any, Any]) -> None:
                create_processor().process(record)

        return Forgets

    app = App("mistakes", processor_wrapper=wrap)
    app.stream("in", **TEXT).filter(lambda k, v: True).to("out")
    with (
        TopologyTestDriver(app) as driver,
        pytest.raises(StreamsError, match=r"was not initialised: let the init of the one around"),
    ):
        driver.topic("in").pipe("a", "x")


def test_a_processor_without_its_context_says_who_sets_it() -> None:
    with pytest.raises(AttributeError, match=r"inner\.context = context; inner\.init\(context\)"):
        Pass().process(Record("a", "x", 0))


@pytest.mark.parametrize(
    "describe",
    [
        lambda stream: stream.process(Pass, name="p"),
        lambda stream: stream.filter(lambda k, v: True, name="p").to("out"),
    ],
)
def test_a_wrapper_that_returns_no_function_is_refused(describe: Callable[[Any], object]) -> None:
    app = App("wrapped", processor_wrapper=lambda step, create_processor: None)

    def describe_and_build() -> None:
        describe(app.stream("in", **TEXT))
        app.topology()

    with pytest.raises(TopologyError, match="step 'p': processor_wrapper returned None"):
        describe_and_build()


def test_deletions_that_a_table_missed_are_looked_for_with_a_wrapper_too() -> None:
    app = App("wrapped", processor_wrapper=create_wrapper(lambda step, record: record))
    app.table("rows", **TEXT, store="r")
    assert list_table_stores_by_topic(app.topology()) == {"rows": ["r"]}
