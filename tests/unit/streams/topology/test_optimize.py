"""Test that optimisations need fewer topics and keep the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, ConfigError, TopologyTestDriver, serdes

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def two_groups(setting: str) -> App:
    """Build an application that counts letters, and early ones again, by the same new key."""
    app = App("a", topology_optimization=setting)
    letters = app.stream("in", **TEXT).select_key(lambda k, v: v, key=serdes.string)
    letters.peek(lambda k, v: None).to("seen")
    letters.group_by_key().count(store="all").to_stream().to("all-counts")
    early = letters.filter(lambda k, v: k is None or k < "c", name="early")
    early.to("early-ones")
    early.group_by_key().count(store="early-counts").to_stream().to("early-out")
    return app


def results(app: App, topics: dict[str, Any]) -> dict[str, Any]:
    with TopologyTestDriver(app, partitions={"in": 2}, seed=3) as driver:
        for number, letter in enumerate("abcabdxa"):
            driver.topic("in").pipe(str(number), letter, timestamp_ms=number)
        return {topic: read(driver.topic(topic)) for topic, read in topics.items()}


def test_repartition_topics_of_the_same_records_become_one() -> None:
    assert two_groups("none").topology().repartition_topics == {
        "a-all-repartition",
        "a-early-counts-repartition",
    }
    for setting in ("all", "merge.repartition.topics"):
        assert two_groups(setting).topology().repartition_topics == {"a-all-repartition"}


def test_the_results_are_the_same() -> None:
    topics: dict[str, Callable[[Any], Any]] = {
        "all-counts": lambda topic: topic.read_table(),
        "early-out": lambda topic: topic.read_table(),
        "seen": lambda topic: sorted(record.value for record in topic.read_all()),
        "early-ones": lambda topic: sorted(record.value for record in topic.read_all()),
    }
    plain = results(two_groups("none"), topics)
    assert plain["all-counts"] == {"a": 3, "b": 2, "c": 1, "d": 1, "x": 1}
    assert results(two_groups("all"), topics) == plain


def test_a_record_without_a_key_is_dropped_before_the_one_topic_for_all_that_follow() -> None:
    def app(setting: str) -> App:
        made = App("a", topology_optimization=setting)
        keyless = made.stream("in", **TEXT).map(lambda k, v: (None, v), **TEXT)
        both = keyless.filter(lambda k, v: True)
        both.to("out")
        both.group_by_key().count(store="one")
        keyless.group_by_key().count(store="two")
        return made

    for setting, written in (("none", ["v"]), ("all", [])):
        with TopologyTestDriver(app(setting)) as driver:
            driver.topic("in").pipe("k", "v", timestamp_ms=1)
            assert [record.value for record in driver.topic("out").read_all()] == written
            assert list(driver.store("one").all()) == []


def test_what_a_step_makes_of_records_in_between_keeps_its_own_topic() -> None:
    app = App("a", topology_optimization="all")
    letters = app.stream("in", **TEXT).select_key(lambda k, v: v, key=serdes.string)
    letters.group_by_key().count(store="all")
    letters.map_values(str.upper).group_by_key().count(store="loud")
    assert app.topology().repartition_topics == {"a-all-repartition", "a-loud-repartition"}


def test_the_same_records_written_by_another_serde_keep_their_own_topic() -> None:
    upper = serdes.of(lambda text: text.upper().encode(), bytes.decode, name="upper")
    app = App("a", topology_optimization="all")
    letters = app.stream("in", **TEXT).select_key(lambda k, v: v, key=serdes.string)
    letters.group_by_key().reduce(lambda old, new: new, store="plain")
    letters.group_by_key(value=upper).reduce(lambda old, new: new, store="loud")
    letters.group_by_key().count(store="all")
    assert app.topology().repartition_topics == {"a-plain-repartition", "a-loud-repartition"}
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=1)
        assert (driver.store("plain").get("v"), driver.store("loud").get("v")) == ("v", "V")


def test_a_topic_that_was_asked_for_stays() -> None:
    app = App("a", topology_optimization="all")
    letters = app.stream("in", **TEXT).select_key(lambda k, v: v, key=serdes.string)
    letters.repartition(name="mine", partitions=3).to("out")
    letters.group_by_key().count(store="all")
    assert app.topology().repartition_topics == {"a-mine-repartition", "a-all-repartition"}


def test_an_optimisation_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="'faster' is not one of 'none', 'all', 'merge"):
        App("a", topology_optimization="faster")
