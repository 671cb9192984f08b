"""Test merging, splitting, repartitioning, and writing to topics that a function chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from streams import (
    App,
    Processor,
    Record,
    StreamsError,
    TopologyError,
    TopologyTestDriver,
    Windowed,
    serdes,
)
from streams.common.partitioning import partition_for_key
from streams.errors import AuthorizationError, InvalidTopic
from streams.settings.exception_handlers import ErrorContext, dead_letter
from tests.unit.streams.bound import BoundTask

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def test_merged_streams_keep_the_order_of_their_records() -> None:
    app = App("a")
    app.stream("one", **TEXT).merge(app.stream("two", **TEXT)).to("out")
    task = BoundTask(app)
    for topic, value in (("one", "1"), ("two", "2"), ("one", "3")):
        task.pipe("k", value, topic=topic)
    assert [value for _, value in task.pairs] == [b"1", b"2", b"3"]


def test_a_stream_of_several_topics_is_one_sub_topology() -> None:
    app = App("a")
    app.stream(["one", "two"], **TEXT, name="both").to("out")
    assert app.topology().source_topics == ("one", "two")
    assert len(app.topology().subtopologies) == 1


def test_a_merge_keeps_a_serde_that_all_have() -> None:
    app = App("a")
    numbers = app.stream("numbers", key=serdes.string, value=serdes.int64)
    merged = app.stream("texts", **TEXT).merge(numbers)
    with pytest.raises(TopologyError, match="needs a value serde"):
        merged.to("out")
    merged.to("out", value=serdes.json)


def test_a_record_goes_to_the_first_branch_whose_predicate_is_true() -> None:
    app = App("a")
    parts = app.stream("in", **TEXT).split(
        {"long": lambda _, v: len(v) > 3, "a": lambda _, v: v.startswith("a")}, default="rest"
    )
    assert list(parts) == ["long", "a", "rest"]
    for name, part in parts.items():
        part.to(name)
    task = BoundTask(app)
    for value in ("abcd", "ab", "b", "long"):
        task.pipe("k", value)
    assert [(topic, value) for topic, _, value, *_ in task.produced] == [
        ("long", b"abcd"),
        ("a", b"ab"),
        ("rest", b"b"),
        ("long", b"long"),
    ]


def test_without_a_default_what_no_branch_takes_is_gone() -> None:
    app = App("a")
    app.stream("in", **TEXT).split({"a": lambda _, v: v == "a"})["a"].to("out")
    task = BoundTask(app)
    task.pipe("k", "b")
    task.pipe("k", "a")
    assert task.pairs == [(b"k", b"a")]


def test_a_function_chooses_the_topic_of_each_record() -> None:
    app = App("a")

    def by_origin(record: Record[str, str]) -> str:
        return f"{record.topic}-{record.value}"

    app.stream("in", **TEXT).to(by_origin)
    task = BoundTask(app)
    task.pipe("k", "x")
    task.pipe("k", "y")
    assert [topic for topic, *_ in task.produced] == ["in-x", "in-y"]
    assert "by_origin" in app.describe()


NO_TOPICS: dict[str, Any] = {
    "empty": "",
    "none": None,
    "a number": 7,
    "a list": ["out"],
    "a blank": "credit card",
    "a slash": "a/b",
    "an umlaut": "\u00fc",
    "a line feed": "out\n",
    "dot": ".",
    "dots": "..",
    "too long": "x" * 250,
}


@pytest.mark.parametrize("chosen", NO_TOPICS.values(), ids=list(NO_TOPICS))
def test_what_is_no_name_of_a_topic_is_for_the_production_handler(chosen: Any) -> None:
    app = App("a")
    app.stream("in", **TEXT).to(lambda record: chosen, name="nowhere")
    task = BoundTask(app)
    with pytest.raises(StreamsError, match=r"'nowhere' can't write in\[0\]@7: the") as it:
        task.pipe("k", "x")
    assert repr(chosen) in str(it.value)
    assert "production_handler= decides about such records" in str(it.value)
    failed: list[ErrorContext] = []

    def note(error: ErrorContext) -> Literal["skip"]:
        failed.append(error)
        return "skip"

    skipping = BoundTask(app, production=note)
    skipping.pipe("k", "x")
    assert skipping.produced == []
    [seen] = failed
    assert seen.target == (chosen if isinstance(chosen, str) else "(chosen)")
    assert (seen.stage, seen.step, seen.key, seen.value) == ("production", "nowhere", "k", "x")
    assert type(seen.error) is InvalidTopic


def test_a_name_of_249_characters_is_one() -> None:
    app = App("a")
    app.stream("in", **TEXT).to(lambda record: "x" * 249)
    task = BoundTask(app)
    task.pipe("k", "x")
    assert [topic for topic, *_ in task.produced] == ["x" * 249]


def test_a_chosen_topic_that_does_not_exist_is_for_the_production_handler() -> None:
    app = App("a")
    app.stream("in", **TEXT).to(lambda record: record.value, name="route")
    task = BoundTask(app, production=dead_letter("dead"))
    task.missing = {"gone"}
    for value in ("out", "gone", "out"):
        task.pipe("k", value)
    assert [(topic, value) for topic, _, value, *_ in task.produced] == [
        ("out", b"out"),
        ("dead", b"gone"),
        ("out", b"out"),
    ]
    failing = BoundTask(app)
    failing.missing = {"gone"}
    failing.pipe("k", "out")
    with pytest.raises(StreamsError, match=r"'route' can't write in\[0\]@7: topic 'gone' does not"):
        failing.pipe("k", "gone")


def test_a_chosen_topic_is_looked_up_once() -> None:
    app = App("a")
    app.stream("in", **TEXT).to(lambda record: record.value)
    task = BoundTask(app)
    for value in ("one", "two", "one", "one"):
        task.pipe("k", value)
    assert task.looked_up == ["one", "two"]


def test_a_partitioner_chooses_the_partition_or_leaves_it_to_the_key() -> None:
    app = App("a")
    app.stream("in", **TEXT).to(
        "out", partitioner=lambda key, value, count: int(value) % count if value != "9" else None
    )
    task = BoundTask(app)
    task.partitions["out"] = 4
    for value in ("1", "6", "9"):
        task.pipe("k", value)
    assert task.chosen == [1, 2, -1]


@pytest.mark.parametrize("topic", ["out", lambda record: "out"], ids=["fixed", "chosen"])
def test_each_partition_that_a_partitioner_chooses_gets_the_record(topic: Any) -> None:
    app = App("a")
    chosen: dict[str, Any] = {"0": (), "1": {1}, "2": [3, 1, 3], "all": range(4)}
    app.stream("in", **TEXT).to(topic, partitioner=lambda key, value, count: chosen[value])
    task = BoundTask(app)
    task.partitions["out"] = 4
    for value in chosen:
        task.pipe("k", value)
    assert task.chosen == [1, 1, 3, 0, 1, 2, 3]
    assert [value for _, value in task.pairs] == [b"1", b"2", b"2", *[b"all"] * 4]
    assert task.dropped_count == 1


def test_a_record_is_repartitioned_to_each_partition_that_is_chosen() -> None:
    app = App("a")
    spread = app.stream("in", **TEXT).repartition(
        partitions=3, partitioner=lambda key, value, count: {0, 2}, name="spread"
    )
    spread.process_values(StampTask).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v")
        assert sorted(driver.topic("out").read_values()) == ["1_0", "1_2"]


class StampTask(Processor[str, str, str, str]):
    """Forwards the name of its task."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(self.context.task_id))


def test_a_partition_that_there_is_not_is_refused() -> None:
    app = App("a")
    app.stream("in", **TEXT).to("out", partitioner=lambda key, value, count: count)
    task = BoundTask(app)
    task.partitions["out"] = 4
    with pytest.raises(StreamsError, match="chose 4 of the 4 of 'out'"):
        task.pipe("k", "x")


def test_what_has_no_key_in_a_window_is_written_and_what_has_a_wrong_one_is_refused() -> None:
    app = App("a")
    windowed: Any = serdes.windowed(serdes.string)

    def place_in_window(key: str, value: str) -> tuple[Any, str]:
        return None if value == "none" else Windowed(5, 0, 1), value

    placed = app.stream("in", **TEXT).map(place_in_window, key=windowed, value=serdes.string)
    placed.to("out")
    task = BoundTask(app, production="skip")
    task.partitions["out"] = 4
    task.pipe("k", "none")
    task.pipe("k", "refused")
    assert [value for _, _, value, *_ in task.produced] == [b"none"]
    assert task.chosen == [-1]


def test_repartitioning_declares_its_partitions() -> None:
    app = App("a")
    app.stream("in", **TEXT).repartition(partitions=3, name="three").to("out")
    topology = app.topology()
    (sink,) = topology.subtopologies[0].sinks
    assert (sink.topic, sink.partitions) == ("a-three-repartition", 3)


def test_a_record_without_a_key_is_not_repartitioned() -> None:
    app = App("a")
    app.stream("in", **TEXT).repartition(name="r").to("out")
    assert repartitioned_without_a_key(app) == []


def test_a_record_without_a_key_is_repartitioned_where_a_left_join_comes_later() -> None:
    app = App("a")
    again = app.stream("in", **TEXT).repartition(name="r").map_values(str.upper)
    other = app.stream("other", **TEXT)
    again.left_join(other, lambda one, two: one, within=5, value=serdes.string).to(
        "out", value=serdes.string
    )
    assert repartitioned_without_a_key(app) == ["a-r-repartition"]


def repartitioned_without_a_key(app: App) -> list[str]:
    """Return the repartition topics that a record without a key is written to."""
    task = BoundTask(app)
    task.pipe(None, "x")
    return [topic for topic, *_ in task.produced if topic.endswith("-repartition")]


def test_a_topic_that_its_own_sub_topology_writes_has_as_many_partitions_as_the_others() -> None:
    app = App("a")
    stream = app.stream("in", **TEXT)
    stream.repartition(name="r").merge(stream).to("out")
    (_,) = app.topology().subtopologies
    assert app.topology().derive_partition_counts({"in": 5}) == {"in": 5, "a-r-repartition": 5}


def test_what_was_repartitioned_is_not_repartitioned_again() -> None:
    app = App("a")
    again = app.stream("in", **TEXT).select_key(lambda k, v: v, key=serdes.string)
    again.repartition(name="by-value").group_by_key().count(store="c")
    assert app.topology().repartition_topics == {"a-by-value-repartition"}


def test_print_hands_each_record_on_as_a_line() -> None:
    lines: list[str] = []
    app = App("a")
    app.stream("in", **TEXT).print("seen", to=lines.append)
    BoundTask(app).pipe("k", "v")
    assert lines == ["[seen]: k, v"]


def test_the_partition_of_a_key_is_kafkas() -> None:
    # Utils.toPositive(Utils.murmur2(key)) % 100, in UtilsTest of Kafka's clients: -1214992855 ...
    assert partition_for_key(b"21", 100) == (-973932308 & 0x7FFFFFFF) % 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda app: app.stream("in put", **TEXT), "'in put' is not a topic's name"),
        (
            lambda app: app.stream("in-.*", **TEXT),
            r"by a pattern: topics\.matching\('in-\.\*'\), where the text is a regular expression",
        ),
        (lambda app: app.stream([], **TEXT), "at least one"),
        (lambda app: app.stream("in", **TEXT).to("a/b"), "'a/b' is not a topic's name"),
        (lambda app: app.stream("in", **TEXT).split({}), "needs its branches"),
        (lambda app: app.stream("in", **TEXT).split({"a": 1}), "needs a function"),
        (lambda app: app.stream("in", **TEXT).split({"a": bool}, default="a"), "one of the"),
        (lambda app: app.stream("in", **TEXT).repartition(partitions=0), "at least 1"),
        (lambda app: app.stream("in", **TEXT).merge(app.table("t", **TEXT)), "to_stream"),
        (
            lambda app: app.stream("in", **TEXT).merge(App("other").stream("in", **TEXT)),
            "two applications",
        ),
    ],
)
def test_what_can_not_be_is_refused_when_it_is_described(wrong: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        wrong(App("a"))


def test_a_chosen_topic_that_may_not_be_written_is_a_matter_of_its_record() -> None:
    app = App("a")
    app.stream("in", **TEXT).to(lambda record: str(record.value), name="copy")
    letters = BoundTask(app, production=dead_letter("dead"))
    letters.refused["secret"] = AuthorizationError("Write", "topic", "secret")
    for value in ("open", "secret", "secret", "open"):
        letters.pipe("k", value)
    assert [topic for topic, *_ in letters.produced] == ["open", "dead", "dead", "open"]
    assert letters.missing == {"secret"}, "the second record is refused without being sent"
    failing = BoundTask(app)
    failing.refused["secret"] = AuthorizationError("Write", "topic", "secret")
    message = r"'copy' can't write in\[0\]@7: not allowed to Write topic 'secret': add the ACL"
    with pytest.raises(StreamsError, match=message):
        failing.pipe("k", "secret")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("1", "the partitioner chose '1' of the 4 partitions of 'out': it returns a number"),
        ("12", "the partitioner chose '12' of the 4 partitions of 'out': it returns a number"),
        ([0, 7], "the partitioner chose 7 of the 4 of 'out'"),
        ([None], "the partitioner chose None of the 4 partitions of 'out': it returns a number"),
        (1.0, "the partitioner chose 1.0 of the 4 partitions of 'out': it returns a number"),
        (-1, "the partitioner chose -1 of the 4 of 'out'"),
        (4, "the partitioner chose 4 of the 4 of 'out'"),
    ],
)
def test_what_is_no_partition_is_for_the_production_handler(chosen: Any, message: str) -> None:
    app = App("a")
    app.stream("in", **TEXT).to("out", partitioner=lambda key, value, count: chosen)
    failed: list[str] = []

    def note(error: ErrorContext) -> Literal["skip"]:
        failed.append(str(error.error))
        return "skip"

    task = BoundTask(app, production=note)
    task.partitions["out"] = 4
    task.pipe("k", "x")
    assert task.produced == []
    [seen] = failed
    assert seen.startswith(message)


@pytest.mark.parametrize(
    "build",
    [
        lambda app: app.table("in-.*", **TEXT),
        lambda app: app.global_table("in-.*", **TEXT),
        lambda app: app.stream("in", **TEXT).to("in-.*"),
        lambda app: app.stream("{stage}-in.*", **TEXT),
        lambda app: app.stream("in[", **TEXT),
    ],
)
def test_a_pattern_is_advised_only_where_it_could_be_read(build: Callable[[App], object]) -> None:
    with pytest.raises(TopologyError, match="is not a topic's name") as refused:
        build(App("a"))
    assert "topics.matching" not in str(refused.value)
