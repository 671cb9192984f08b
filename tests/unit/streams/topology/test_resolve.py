"""Test how the patterns of a topology are replaced by the topics that exist."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import (
    App,
    ConfigError,
    TopologyError,
    TopologyTestDriver,
    dead_letter,
    serdes,
    topics,
)
from streams.commands.restorable_tasks import list_restorable_tasks
from streams.runtime.access.acls import (
    AclOperation,
    PatternType,
    derive_acls,
    list_topic_reads_and_writes,
)
from streams.runtime.assigning.required_topics import check_topics
from streams.spark.cuts.named_topics import require_named_topics
from streams.topics import parse_pattern
from streams.topology.build import Topology
from streams.topology.declared import declare_topology, decode_topology, encode_topology
from streams.topology.description import describe_topology
from streams.topology.resolve import (
    match_patterns_without_overlap,
    resolve_subtopology_of_task,
    resolve_topology,
)

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def counting(*, co_partitioned: bool = True) -> App:
    app = App("shop")
    pattern = topics.matching("orders-.*")
    orders = app.stream(pattern, **TEXT, co_partitioned=co_partitioned)
    orders.group_by_key().count(store="n").to_stream().to("by-key")
    by_value = orders.group_by(lambda _, value: value, key=serdes.string)
    by_value.count(store="m").to_stream().to("by-value")
    return app


def resolve(app: App, **counts: int) -> Topology:
    return resolve_topology(
        app.topology(), {name.replace("_", "-"): count for name, count in counts.items()}
    )


def test_a_pattern_becomes_the_topics_that_match_and_no_internal_ones() -> None:
    app = App("shop")
    app.stream(topics.matching(".*"), **TEXT).filter(lambda *_: True).to("copy")
    existing = [
        "orders",
        "shop-m-changelog",
        "shop-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000009-topic",
        "shop-m-repartition",
        "shop-ledger",
        "shop-of-someone",
        "other-m-changelog",
        "__consumer_offsets",
    ]
    resolved = resolve_topology(app.topology(), dict.fromkeys(existing, 1))
    assert resolved.input_topics == ("orders", "other-m-changelog", "shop-of-someone")


def test_before_it_is_resolved_a_topology_names_no_topic_of_a_pattern() -> None:
    topology = counting().topology()
    assert topology.input_topics == ()
    assert topology.source_topics == ("shop-m-repartition",)
    assert [each.expression for each in topology.patterns] == ["orders-.*"]


def test_topics_into_one_store_must_have_equal_partition_counts() -> None:
    resolved = resolve(counting(), orders_a=2, orders_b=3)
    with pytest.raises(TopologyError, match=r"step .* keeps state by key in store 'n'.*'orders-a'"):
        resolved.derive_partition_counts({"orders-a": 2, "orders-b": 3})


def test_they_need_not_where_the_stream_says_so() -> None:
    resolved = resolve(counting(co_partitioned=False), orders_a=2, orders_b=3)
    counts = resolved.derive_partition_counts({"orders-a": 2, "orders-b": 3})
    assert counts["shop-m-repartition"] == 3


def test_a_repartition_topic_behind_a_pattern_keeps_its_partitions() -> None:
    app = counting(co_partitioned=False)
    existing = {"orders_a": 4, "shop_m_repartition": 3}
    counts = resolve(app, **existing).derive_partition_counts({"orders-a": 4})
    assert counts["shop-m-repartition"] == 3
    declared = declare_topology(describe_topology(app.topology()))
    resolved = declared.resolve_patterns({"orders-a": 4, "shop-m-repartition": 3}, "shop")
    assert resolved.derive_partition_counts({"orders-a": 4})["shop-m-repartition"] == 3


def test_without_a_topic_that_matches_nothing_is_derived_behind_it() -> None:
    assert resolve(counting(), elsewhere=1).derive_partition_counts({}) == {}


def test_joined_topics_of_patterns_must_have_equal_partition_counts() -> None:
    app = App("shop")
    left = app.stream(topics.matching("l-.*"), **TEXT)
    right = app.stream(topics.matching("r-.*"), **TEXT)
    left.join(right, lambda a, b: a + b, within=1_000, value=serdes.string).to("joined")
    counts = {"l-1": 2, "l-2": 2, "r-1": 3}
    with pytest.raises(TopologyError, match="'l-1' has 2, 'l-2' has 2, 'r-1' has 3"):
        resolve_topology(app.topology(), counts).derive_partition_counts(counts)


def test_a_topic_that_two_patterns_match_is_refused_by_name() -> None:
    with pytest.raises(TopologyError, match=r"'ab' matches .*'\.\*b'.* and .*'a\.\*'"):
        match_patterns_without_overlap(["^a.*", "^.*b"], ["ab", "ac"], "shop")


def test_a_name_that_a_pattern_matches_is_refused_when_the_topology_is_built() -> None:
    app = App("shop")
    app.stream(topics.matching("a.*"), **TEXT).to("x")
    app.stream("ab", **TEXT, name="named").to("y")
    with pytest.raises(TopologyError, match=r"'ab', which step 'named' reads, matches"):
        app.topology()


def test_a_sink_into_a_topic_that_its_source_matches_is_refused() -> None:
    app = App("shop")
    app.stream(topics.matching("a.*"), **TEXT).to("ab")
    with pytest.raises(TopologyError, match="writes each record of 'ab' back"):
        app.topology()


def test_a_table_takes_no_pattern() -> None:
    with pytest.raises(TopologyError, match=r"to_table\(\) makes a table"):
        App("shop").table(topics.matching("a.*"), **TEXT)  # type: ignore[arg-type]


def test_a_pattern_that_is_read_twice_is_one_source() -> None:
    app = App("shop")
    first = app.stream(topics.matching("a.*"), **TEXT)
    assert app.stream(topics.matching("a.*"), **TEXT) is first


def test_a_pattern_is_shown_as_kafka_streams_shows_it() -> None:
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: orders-.*)" in counting().describe()


def test_members_declare_the_pattern_itself() -> None:
    declared = declare_topology(describe_topology(counting().topology()))
    assert decode_topology(encode_topology(declared)) == declared
    assert declared.patterns == ("^orders-.*",)
    assert declared.input_topics == ()
    resolved = declared.resolve_patterns({"orders-a": 1, "else": 1}, "shop")
    assert resolved.input_topics == ("orders-a",)
    assert resolved.fingerprint == declared.fingerprint


def test_a_driver_takes_topics_that_match_also_later_ones() -> None:
    app = counting()
    with TopologyTestDriver(app, partitions={"orders-b": 1}) as driver:
        for topic in ("orders-a", "orders-b", "orders-a"):
            driver.topic(topic).pipe("ann", "pen")
        driver.crash()
        driver.restart()
        driver.topic("orders-c").pipe("ann", "pen")
        assert driver.topic("by-key").read_values() == [1, 2, 3, 4]
        assert driver.topic("by-value").read_table() == {"pen": 4}


def test_a_source_by_a_pattern_has_its_own_extractor_and_topic_in_records() -> None:
    app = App("shop")
    orders = app.stream(
        topics.matching("orders-.*"),
        **TEXT,
        timestamp_extractor=lambda record, partition_time_ms: int(record.value),
    )
    orders.to("copy")
    with TopologyTestDriver(app) as driver:
        driver.topic("orders-a").pipe("ann", "17", timestamp_ms=3)
        assert driver.topic("copy").read().timestamp_ms == 17


def test_a_topology_builder_reads_by_a_pattern() -> None:
    app = App("shop")
    builder = app.topology_builder()
    builder.add_source("in", topics.matching("a.*"), **TEXT)
    builder.add_sink("out", "copy", "in", **TEXT)
    with TopologyTestDriver(app) as driver:
        driver.topic("a1").pipe("ann", "x")
        assert driver.topic("copy").read_pairs() == [("ann", "x")]


def test_a_source_reads_a_pattern_or_names() -> None:
    with pytest.raises(TopologyError, match="by a pattern and others"):
        App("shop").topology_builder().add_source("in", topics.matching("a"), "b", **TEXT)


def test_what_a_source_has_of_its_own_is_in_the_json() -> None:
    app = App("shop")
    source = app.stream(
        topics.matching("a.*"),
        **TEXT,
        timestamp_extractor="use_partition_time_on_invalid_timestamp",
        offset_reset="latest",
    )
    source.to("copy")
    (step, _) = describe_topology(app.topology()).subtopologies[0].steps
    assert step.timestamp_extractor == "use_partition_time_on_invalid_timestamp"
    assert (step.topic, step.offset_reset) == ("^a.*", "latest")


def test_the_first_record_of_a_topic_that_appears_is_read_with_latest() -> None:
    app = App("shop")
    app.stream(topics.matching("a.*"), **TEXT, offset_reset="latest").to("copy")
    with TopologyTestDriver(app) as driver:
        driver.topic("a1").pipe("ann", "x")
        assert driver.topic("copy").read_pairs() == [("ann", "x")]


def test_dead_letters_may_not_go_to_a_topic_of_a_pattern() -> None:
    app = App("shop", processing_handler=dead_letter("ab"))
    app.stream(topics.matching("a.*"), **TEXT).filter(lambda *_: True).to("copy")
    with pytest.raises(ConfigError, match="reads this topic itself"):
        app.topology()


def test_a_start_checks_topics_of_patterns_as_they_are() -> None:
    servers = "here:9092"
    topology = counting().topology()
    check_topics(topology, {"by-key": 1, "by-value": 1}, servers)
    found = {"by-key": 1, "by-value": 1, "orders-a": 2, "orders-b": 2}
    check_topics(topology, found, servers)
    with pytest.raises(TopologyError, match="'orders-b' has 3"):
        check_topics(topology, {**found, "orders-b": 3}, servers)


def test_topics_of_a_pattern_are_not_cut_or_reconciled() -> None:
    with pytest.raises(ConfigError, match="can't be cut or reconciled"):
        require_named_topics(counting().topology())


def test_rights_to_topics_of_a_pattern_go_by_their_prefix() -> None:
    app = counting()
    acls = [a for a in derive_acls(app.topology(), app.config) if "by a pattern" in str(a.purposes)]
    assert [(a.name, a.operation, a.pattern) for a in acls] == [
        ("orders-", AclOperation.READ, PatternType.PREFIXED)
    ]
    every = App("shop")
    every.stream(topics.matching(".*"), **TEXT).filter(lambda *_: True).to("copy")
    found = derive_acls(every.topology(), every.config)
    assert ("*", PatternType.LITERAL) in {(a.name, a.pattern) for a in found}
    assert "*" not in list_topic_reads_and_writes(found)


def test_commands_list_the_tasks_of_topics_that_match() -> None:
    made = {"shop-n-changelog": 2, "shop-m-changelog": 2, "shop-m-repartition": 2}
    topology = counting().topology()
    assert [task.name for task in list_restorable_tasks(topology, made)] == ["1_0", "1_1"]
    tasks = list(list_restorable_tasks(topology, {**made, "orders-a": 2, "orders-b": 2}))
    assert [task.name for task in tasks] == ["0_0", "0_1", "1_0", "1_1"]
    assert [p.topic for p in tasks[0].partitions] == ["orders-a", "orders-b"]


def test_a_pattern_that_the_repartition_topic_matches_counts_each_record_once() -> None:
    app = App("orders-shop")
    orders = app.stream(topics.matching(r"orders-.*"), **TEXT)
    by_value = orders.group_by(lambda _, value: value, key=serdes.string)
    by_value.count(store="n").to_stream().to("counts")
    with TopologyTestDriver(app) as driver:
        for _ in range(2):
            driver.topic("orders-eu").pipe("x", "left", timestamp_ms=0)
        assert driver.topic("counts").read_pairs() == [("left", 1), ("left", 2)]


@pytest.mark.parametrize("is_pattern_first", [True, False])
def test_a_pattern_that_the_repartition_topic_of_its_join_matches(is_pattern_first: bool) -> None:
    app = App("shop")
    pattern = topics.matching("shop-[a-z-]+")
    first = app.stream(pattern, **TEXT) if is_pattern_first else None
    other = app.stream("other", **TEXT).select_key(lambda _, value: value)
    moved = other.repartition(name="k", **TEXT)
    matched = first or app.stream(pattern, **TEXT)
    moved.join(matched, lambda a, b: f"{a}/{b}", within=timedelta(minutes=5)).to("out", **TEXT)
    with TopologyTestDriver(app) as driver:
        driver.topic("shop-eu").pipe("x", "left", timestamp_ms=0)
        driver.topic("other").pipe("q", "x", timestamp_ms=1)
        assert driver.topic("out").read_pairs() == [("x", "x/left")]


def test_internal_topics_do_not_count_as_partitions_of_a_store() -> None:
    app = App("shop")
    app.stream(topics.matching(".*"), **TEXT).group_by_key().count(store="n")
    [sub] = app.topology().subtopologies
    existing = {"orders": 2, "__consumer_offsets": 50, "shop-n-changelog": 8, "shop-ledger": 1}
    assert resolve_subtopology_of_task(sub, existing).sources.keys() == {"orders"}


def test_a_lost_repartition_topic_is_none_of_a_pattern() -> None:
    topology = counting().topology()
    [pattern, *_] = topology.patterns
    assert pattern.application_id == "shop"
    assert not topics.matching(".*").matches_topic("__consumer_offsets")
    wide = parse_pattern("^.*", "shop")
    assert not wide.matches_topic("shop-m-repartition")
    assert wide.matches_topic("other-m-repartition")
    assert topics.matching(".*").matches_topic("shop-m-repartition")


def test_a_pattern_in_a_list_that_has_a_name_is_named_by_its_place() -> None:
    app = App("shop")
    app.stream([topics.matching("orders-.*"), "returns"], name="in", **TEXT).to("out")
    described = app.describe()
    assert "Source: in-0 (topics: orders-.*)" in str(described)
    assert "Source: in-returns (topics: [returns])" in str(described)
