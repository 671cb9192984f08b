"""Test the topology that the DSL builds: sub-topologies, names, serdes, and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, TopologyError, serdes
from streams.processes.error_exit import report_error
from streams.topology.build import Topology


def words(app: App) -> Any:
    return app.stream("lines", key=serdes.string, value=serdes.string).flat_map_values(str.split)


def word_count() -> App:
    app = App("word-count")
    counts = words(app).group_by(lambda _, word: word, key=serdes.string).count(store="counts")
    counts.to_stream().to("counts-by-word")
    return app


def test_grouping_by_a_new_key_cuts_the_topology_at_a_repartition_topic() -> None:
    topology = word_count().topology()
    first, second = topology.subtopologies
    assert list(first.sources) == ["lines"]
    assert [sink.topic for sink in first.sinks] == ["word-count-counts-repartition"]
    assert list(second.sources) == ["word-count-counts-repartition"]
    assert [sink.topic for sink in second.sinks] == ["counts-by-word"]
    assert [store.name for store in second.stores] == ["counts"]
    assert topology.restore_topic_of("counts") == "word-count-counts-changelog"


def test_grouping_by_the_key_that_is_there_needs_no_repartition_topic() -> None:
    app = App("a")
    app.stream("t", key=serdes.string, value=serdes.string).group_by_key().count(store="c")
    topology = app.topology()
    assert len(topology.subtopologies) == 1
    assert topology.repartition_topics == frozenset()


@pytest.mark.parametrize(
    "rekey",
    [
        lambda s: s.map(lambda k, v: (v, k), key=serdes.string, value=serdes.string),
        lambda s: s.flat_map(lambda k, v: [(v, k)], key=serdes.string, value=serdes.string),
        lambda s: s.select_key(lambda k, v: v, key=serdes.string),
        lambda s: s.select_key(lambda k, v: v, key=serdes.string).filter(lambda k, v: True),
    ],
)
def test_a_change_of_key_is_remembered_until_a_group_needs_it(
    rekey: Callable[[Any], Any],
) -> None:
    app = App("a")
    rekey(words(app)).group_by_key().count(store="c")
    assert app.topology().repartition_topics == {"a-c-repartition"}


def test_a_repartition_topic_has_as_many_partitions_as_the_widest_input() -> None:
    counts = word_count().topology().derive_partition_counts({"lines": 7})
    assert counts == {"lines": 7, "word-count-counts-repartition": 7}


def test_independent_chains_are_sub_topologies_of_their_own() -> None:
    app = App("a")
    for topic in ("x", "y"):
        app.stream(topic, key=serdes.string, value=serdes.string).to(f"{topic}-out")
    assert [list(sub.sources) for sub in app.topology().subtopologies] == [["x"], ["y"]]


def test_one_stream_may_be_used_twice() -> None:
    app = App("a")
    stream = app.stream("x", key=serdes.string, value=serdes.string)
    stream.to("one")
    stream.map_values(str.upper).to("two")
    (only,) = app.topology().subtopologies
    assert [sink.topic for sink in only.sinks] == ["one", "two"]


def test_a_topic_that_is_read_twice_is_read_once() -> None:
    app = App("a")
    words(app).to("one")
    words(app).to("two")
    app.stream(["lines", "lines", "other"], key=serdes.string, value=serdes.string).to("three")
    (only,) = app.topology().subtopologies
    assert list(only.sources) == ["lines", "other"]
    assert [sink.topic for sink in only.sinks] == ["one", "two", "three"]


def test_a_loop_through_a_topic_is_fine_where_it_can_end() -> None:
    app = App("a")
    words(app).filter(lambda k, v: v != "").map_values(str.lower).to("lines")
    assert len(app.topology().subtopologies) == 1


def test_serdes_flow_to_where_they_are_needed() -> None:
    app = App("a")
    words(app).filter(lambda k, v: bool(v)).peek(lambda k, v: None).to("out")
    (sink,) = app.topology().subtopologies[0].sinks
    assert (sink.key, sink.value) == (serdes.string, serdes.string)


def test_the_description_shows_sub_topologies_steps_stores_and_topics() -> None:
    text = word_count().describe()
    for part in ("Sub-topology: 1", "topics: [lines]", "stores: [counts]", "topic: counts-by-word"):
        assert part in text
    assert "KSTREAM-SOURCE-0000000000" in text


def test_given_names_stay() -> None:
    app = App("a")
    stream = app.stream("x", key=serdes.string, value=serdes.string, name="read")
    stream.map_values(str.upper, name="shout").to("out", name="write")
    assert [n.name for n in app.topology().subtopologies[0].nodes] == ["read", "shout", "write"]


def no_serde_after_map(app: App) -> Any:
    return words(app).map(lambda k, v: (v, k), name="swap").to("out", name="write")


def no_serde_for_the_group(app: App) -> Any:
    return words(app).group_by(lambda k, v: v).count(name="tally")


def not_a_serde(app: App) -> Any:
    return words(app).to("out", key="string", name="write")


def not_a_function(app: App) -> Any:
    return words(app).filter("big", name="sieve")


def name_used_twice(app: App) -> Topology:
    words(app).peek(print, name="same").filter(max, name="same").to("out")
    return app.topology()


def store_used_twice(app: App) -> Topology:
    stream = app.stream("t", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store="c")
    stream.group_by_key().count(store=Store.in_memory("c"))
    return app.topology()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (no_serde_after_map, "step 'write' needs a key serde"),
        (no_serde_for_the_group, "step 'tally' needs a key serde"),
        (not_a_serde, "step 'write': key='string' is not a serde"),
        (not_a_function, "step 'sieve' needs a function, got 'big'"),
        (name_used_twice, "step 'same' is used twice"),
        (store_used_twice, "store 'c' is used twice"),
        (lambda app: app.topology(), "'a' has no steps"),
    ],
)
def test_a_mistake_is_refused_and_names_the_step(
    mistake: Callable[[App], Any], message: str
) -> None:
    with pytest.raises(TopologyError, match=message):
        mistake(App("a"))


def test_a_topology_that_can_not_be_built_is_told_with_the_line_that_says_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        App("a").stream("in", key=serdes.string, value=serdes.string).map(swapped).to("out")
    except TopologyError as error:
        report_error(error)
    line = capsys.readouterr().err
    assert re.search(r"needs a key serde.*\(.*test_topology\.py:\d+\)$", line.strip())


def swapped(key: str, value: str) -> tuple[str, str]:
    return value, key
