"""Test that a serde that needs its topic is bound once, at the end of a source, sink or store."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, Windowed, serdes, until_time_limit
from streams.common.changes import Change
from streams.serdes import Field, Serde
from tests.unit.streams.bound import BoundTask


def topical(asked: list[tuple[str, Field]] | None = None, where: str = "nowhere") -> Serde[str]:
    """Return a serde that writes topic and field before the value and checks them on reading."""

    def bind(topic: str, field: Field) -> Serde[str]:
        if asked is not None:
            asked.append((topic, field))
        return topical(where=f"{topic}.{field}")

    def deserialize(data: bytes) -> str:
        place, _, text = data.decode().partition("|")
        if place != where:
            raise ValueError(f"written for {place}, read by {where}")
        return text

    return Serde("topical", lambda text: f"{where}|{text}".encode(), deserialize, bind)


def test_most_serdes_are_the_same_for_every_topic() -> None:
    for serde in (serdes.string, serdes.json, serdes.windowed(serdes.string, 5)):
        assert serde.for_topic("t", "key") is serde


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (serdes.windowed(topical(), 5), Windowed("k", 0, 5)),
        (serdes.session_windowed(topical()), Windowed("k", 0, 5)),
        (serdes.changed(topical()), Change("new", "old")),
    ],
)
def test_a_serde_around_another_is_bound_with_it(serde: Serde[Any], value: object) -> None:
    bound = serde.for_topic("t", "value")
    data = bound.serialize(value)
    assert b"t.value|" in data
    assert bound.deserialize(data) == value
    assert bound.name == serde.name


def test_sources_sinks_and_stores_know_their_topics() -> None:
    asked: list[tuple[str, Field]] = []
    serde = topical(asked)
    app = App("a")
    grouped = (
        app.stream("in", key=serde, value=serde)
        .select_key(lambda _, value: value, key=serde)
        .group_by_key()
    )
    reduced = grouped.reduce(lambda old, new: old + new, store=Store.persistent("s"))
    reduced.to_stream().to("out", key=serde, value=serde)
    first, second = (BoundTask(app, number) for number in (0, 1))
    first.pipe("in.key|k", "in.value|v")
    (topic, key, value, *_) = first.produced[0]
    assert (topic, key) == ("a-s-repartition", b"a-s-repartition.key|v")
    second.pipe(key.decode(), value.decode())
    second.flush()
    assert second.pairs == [(b"out.key|v", b"out.value|v")]
    assert [entry[0] for entry in second.stores["s"].drain_writes()] == [b"a-s-changelog.key|v"]
    topics = ["in", "a-s-repartition", "a-s-changelog", "out"]
    assert set(asked) == {(t, f) for t in topics for f in ("key", "value")}


def test_a_sink_whose_topic_is_chosen_knows_each_of_them() -> None:
    asked: list[tuple[str, Field]] = []
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.to(lambda record: f"to-{record.key}", value=topical(asked))
    task = BoundTask(app)
    for key in "abab":
        task.pipe(key, "v")
    assert [value for _, value in task.pairs] == [b"to-a.value|v", b"to-b.value|v"] * 2
    assert asked == [("to-a", "value"), ("to-b", "value")]


def test_a_buffer_knows_its_changelog() -> None:
    app = App("a")
    table = app.table("in", key=topical(), value=topical())
    table.suppress(until_time_limit(10), name="wait").to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", 0)
        driver.topic("in").pipe("other", "w", 10)
        assert driver.topic("out").read_table() == {"k": "v"}
        name = "a-wait-store-changelog"
        changelog = driver.topic(name, key=serdes.bytes, value=serdes.bytes).read_all()
        assert {each.key.partition(b"|")[0] for each in changelog} == {f"{name}.key".encode()}


def test_rows_are_grouped_by_keys_whose_bytes_are_a_topic_s() -> None:
    app = App("a")
    pairs = serdes.json
    key = Serde("pairs", *serdes_that_fail(), lambda topic, field: pairs)
    table = app.table("in", key=serdes.string, value=serdes.string)
    grouped = table.group_by(lambda key, value: ([value[0]], value), key=key, value=topical())
    grouped.count(store="groups").to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        for text in ("ab", "ac", "b"):
            driver.topic("in").pipe("k", text)
        counts = [(r.key, r.value) for r in driver.topic("out").read_all()]
    assert counts == [(["a"], 1), (["a"], 1), (["a"], 0), (["b"], 1)]


def test_an_object_is_copied_without_asking_for_its_topic() -> None:
    app = App("a")
    lists: Serde[Any] = Serde("lists", *serdes_that_fail(), lambda topic, field: serdes.json)
    stream = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    table = stream.aggregate(list, lambda key, value, seen: [*seen, value], value=lists, store="s")
    table.to_stream().map_values(len, value=serdes.int64).to("out")
    task = BoundTask(app)
    task.pipe("k", "v")
    task.flush()
    assert task.pairs == [(b"k", serdes.int64.serialize(1))]


def serdes_that_fail() -> tuple[Any, Any]:
    def fail(value: Any) -> Any:
        raise AssertionError("it was not bound")

    return fail, fail
