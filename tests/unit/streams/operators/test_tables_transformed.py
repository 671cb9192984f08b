"""Test that transform_values applies a user's class to a table's values.

The expected results are those of Kafka Streams 4.3's own TopologyTestDriver.
"""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, StreamsError, TopologyError, ValueTransformer, serdes
from streams.dsl.table import Table
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}
SEEN = Store.in_memory("seen", key=serdes.string, value=serdes.int64, caching=False)


class Numbered(ValueTransformer[str, str, str]):
    """Counts in a store how often it was called for a key, and appends the count to the value."""

    stores = (SEEN,)

    def init(self, context: Any) -> None:
        self.seen = context.store("seen")

    def transform(self, key: str, value: str | None) -> str:
        times = (self.seen.get(key) or 0) + 1
        self.seen.put(key, times)
        return f"{value or '-'}#{times}@{self.context.timestamp_ms}"


class Placed(ValueTransformer[str, str, str]):
    """Appends timestamp, topic and number of headers of the record that a value comes from."""

    def transform(self, key: str, value: str | None) -> str | None:
        if value is None:
            return None
        read, headers = self.context.record_metadata, dict(self.context.headers)
        return f"{value}@{self.context.timestamp_ms} {read and read.topic} {len(headers)}"


def rows(app: App, topic: str = "rows") -> Table[str, str]:
    return app.table(topic, **BOTH, store=Store.in_memory(topic, caching=False))


def piped(app: App, *fed: tuple[str | None, int], **handlers: Any) -> BoundTask:
    task = BoundTask(app, **handlers)
    for value, timestamp_ms in fed:
        task.pipe("k", value, timestamp_ms, topic="rows")
        task.flush()
        task.commit_stores()
    return task


def values(task: BoundTask) -> list[str | None]:
    return [value and value.decode() for _, value in task.pairs]


def test_every_update_is_transformed_deletions_too_and_its_stores_have_its_time() -> None:
    app = App("a")
    rows(app).transform_values(Numbered).to_stream().to("out")
    task = piped(app, ("x", 5), (None, 3))
    assert values(task) == ["x#1@5", "-#2@3"]
    assert task.stores["seen"].entry("k") == (2, 3)


def test_where_nothing_is_kept_the_old_value_is_transformed_anew() -> None:
    app = App("a")
    table = rows(app).transform_values(Numbered)
    table.group_by(lambda key, value: (key, value), **BOTH).count()
    task = piped(app, ("x", 5), ("y", 6))
    changes = serdes.changed(serdes.string)
    seen = [changes.deserialize(value) for _, value in task.pairs]
    assert seen == [("x#1@5", "-#2@5", True), ("y#3@6", "x#4@6", True)]


@pytest.mark.parametrize("caching", [False, True])
def test_a_table_that_is_kept_has_its_old_value_from_its_store(caching: bool) -> None:
    app = App("a")
    kept = Store.in_memory("kept", caching=caching)
    table = rows(app).transform_values(Numbered, store=kept)
    table.group_by(lambda key, value: (key, value), **BOTH).count()
    task = piped(app, ("x", 5), ("y", 6))
    changes = serdes.changed(serdes.string)
    seen = [changes.deserialize(value) for _, value in task.pairs]
    assert seen == [("x#1@5", None, True), ("y#2@6", "x#1@5", True)]
    assert task.stores["kept"].entry("k") == ("y#2@6", 6)


@pytest.mark.parametrize("how", [None, Store.versioned("kept", history=100)])
def test_updates_of_a_versioned_table_keep_their_order(how: Store | None) -> None:
    app = App("a")
    versions = app.table("rows", **BOTH, store=Store.versioned("rows", history=100))
    table = versions.transform_values(Placed, store=how)
    assert table._view.is_versioned
    table.join(rows(app, "other"), lambda own, other: own).to_stream().to("out", **BOTH)
    task = BoundTask(app)
    task.pipe("k", "o", topic="other")
    for value, timestamp_ms in (("x", 5), ("late", 3)):
        task.pipe("k", value, timestamp_ms, topic="rows")
    assert values(task) == ["x@5 rows 1"]


def test_a_step_that_asks_for_a_value_has_it_transformed_and_it_is_of_no_record() -> None:
    app = App("a")
    table = rows(app).transform_values(Placed)
    table.join(rows(app, "other"), lambda own, other: own + other).to_stream().to("out", **BOTH)
    task = piped(app, ("x", 5))
    task.pipe("k", "!", 9, topic="other")
    task.pipe("k", "y", 10, topic="rows")
    assert values(task) == ["x@5 None 0!", "y@10 rows 1!"]
    assert [(time_ms, headers) for *_, time_ms, headers in task.produced] == [
        (9, [("trace", b"1")]),
        (10, [("trace", b"1")]),
    ]


def test_a_step_that_asks_for_a_value_is_connected_to_the_transformers_stores() -> None:
    app = App("a")
    table = rows(app).transform_values(Numbered)
    rows(app, "other").join(table, lambda own, other: other).to_stream().to("out", **BOTH)
    task = piped(app, ("x", 5))
    task.pipe("k", "!", 9, topic="other")
    assert values(task) == ["x#2@5"]
    assert task.stores["seen"].entry("k") == (2, 5)


def test_transformers_are_closed_with_the_task_those_that_are_asked_too() -> None:
    closed: list[str] = []

    class Closing(Placed):
        def close(self) -> None:
            closed.append("one")

    app = App("a")
    rows(app, "other").join(rows(app).transform_values(Closing), lambda own, other: other)
    task = BoundTask(app)
    task.close()
    assert closed == ["one", "one"]


def test_a_transformer_that_raises_names_its_step_and_a_handler_may_skip_the_update() -> None:
    class Number(ValueTransformer[str, str, str]):
        def transform(self, key: str, value: str | None) -> str:
            return str(int(value or 0) + 1)

    def app() -> App:
        app = App("a")
        rows(app).transform_values(Number, name="t").to_stream().to("out")
        return app

    assert values(piped(app(), ("x", 5), ("1", 6), processing="skip")) == ["2"]
    with pytest.raises(StreamsError, match=r"'t'.*invalid literal"):
        piped(app(), ("x", 5))


def test_a_transformer_forwards_nothing() -> None:
    class Forwarding(ValueTransformer[str, str, str]):
        def transform(self, key: str, value: str | None) -> str:
            self.context.forward(None)

    app = App("a")
    rows(app).transform_values(Forwarding, name="t").to_stream().to("out")
    with pytest.raises(StreamsError, match="step 't' can't forward: transform_values returns one"):
        piped(app, ("x", 5))


def test_what_is_no_transformer_is_refused_by_the_name_of_the_step() -> None:
    app = App("a")
    table = rows(app)
    with pytest.raises(TopologyError, match="'t' needs a ValueTransformer, and"):
        table.transform_values(lambda: str.upper, name="t")  # type: ignore[arg-type, return-value]
    with pytest.raises(TopologyError, match="'t' needs a ValueTransformer's class"):
        table.transform_values(Placed(), name="t")  # type: ignore[arg-type]
    one = Placed()
    with pytest.raises(TopologyError, match="the same ValueTransformer twice"):
        table.transform_values(lambda: one, name="t")
    with pytest.raises(TopologyError, match="stores is a list"):
        table.transform_values(Placed, stores="seen", name="t")
