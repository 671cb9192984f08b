"""Test that topics whose records meet in a store must have equal partition counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import (
    App,
    Processor,
    Record,
    Store,
    StreamsError,
    TopologyError,
    TopologyTestDriver,
    ValueTransformer,
    serdes,
    windows,
)
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.required_topics import check_topics
from streams.settings.config import StreamsConfig
from streams.topology.declared import declare_topology, decode_topology, encode_topology
from streams.topology.description import describe_topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

TEXT: Any = {"key": serdes.string, "value": serdes.string}
UNEQUAL = {"x": 4, "y": 3}
BOTH_NAMED = "'x' has 4, 'y' has 3: make them equal, or send one through repartition"


class Counter(Processor[str, str, str, int]):
    stores = ("shared",)

    def process(self, record: Record[str, str]) -> None:
        store = self.context.store("shared")
        store.put(record.key, (store.get(record.key) or 0) + 1)


class Lookup(ValueTransformer[str, str, str]):
    stores = ("shared",)

    def transform(self, key: str, value: str | None) -> str | None:
        return str(self.context.store("shared").get(key))


def counts(app: App, **inputs: int) -> dict[str, int]:
    return app.topology().derive_partition_counts(inputs)


def merge_and_count(app: App, **flag: Any) -> None:
    app.stream("x", **TEXT).merge(app.stream("y", **TEXT), **flag).group_by_key().count(store="n")


def list_and_count(app: App, **flag: Any) -> None:
    app.stream(["x", "y"], **TEXT, **flag).group_by_key().count(store="n")


def merge_and_window(app: App, **flag: Any) -> None:
    merged = app.stream("x", **TEXT).merge(app.stream("y", **TEXT), **flag)
    merged.filter(lambda key, value: True).group_by_key().windowed_by(windows.session(10)).count(
        store="n"
    )


def merge_into_table(app: App, **flag: Any) -> None:
    app.stream("x", **TEXT).merge(app.stream("y", **TEXT), **flag).to_table(store="n")


def merge_and_process(app: App, **flag: Any) -> None:
    app.add_store(Store.persistent("shared", key=serdes.string, value=serdes.int64))
    app.stream("x", **TEXT).merge(app.stream("y", **TEXT)).process(Counter, **flag)


def share_a_store(app: App, **flag: Any) -> None:
    app.add_store(Store.persistent("shared", key=serdes.string, value=serdes.int64))
    app.stream("x", **TEXT).process(Counter)
    app.stream("y", **TEXT).process_values(Counter, **flag)


def share_a_tables_store(app: App, **flag: Any) -> None:
    app.table("x", key=serdes.string, value=serdes.int64, store="shared")
    app.stream("y", **TEXT).process(Counter, **flag)


def share_a_store_with_a_transformer(app: App, **flag: Any) -> None:
    app.add_store(Store.persistent("shared", key=serdes.string, value=serdes.int64))
    app.stream("x", **TEXT).process(Counter)
    app.table("y", **TEXT).transform_values(Lookup, **flag)


MEETINGS = [
    merge_and_count,
    list_and_count,
    merge_and_window,
    merge_into_table,
    merge_and_process,
    share_a_store,
    share_a_tables_store,
    share_a_store_with_a_transformer,
]


@pytest.mark.parametrize("build", MEETINGS)
def test_topics_that_meet_in_a_store_need_equal_counts_unless_it_is_said(
    build: Callable[..., None],
) -> None:
    app = App("a")
    build(app)
    assert counts(app, x=4, y=4) == {"x": 4, "y": 4}
    with pytest.raises(TopologyError, match=BOTH_NAMED) as raised:
        counts(app, **UNEQUAL)
    assert "keeps state by key in store " in str(raised.value)
    assert "co_partitioned=False" in str(raised.value)

    app = App("a")
    build(app, co_partitioned=False)
    assert counts(app, **UNEQUAL) == UNEQUAL


def test_the_step_and_the_store_are_named() -> None:
    app = App("a")
    app.stream(["x", "y"], **TEXT).group_by_key().count(store="orders", name="count-orders")
    with pytest.raises(TopologyError, match="step 'count-orders' keeps state by key in store 'or"):
        counts(app, **UNEQUAL)


def test_steps_without_state_take_what_comes() -> None:
    app = App("a")
    app.stream(["x", "y"], **TEXT).filter(lambda key, value: True).map_values(str).to("out")
    app.stream("z", **TEXT).merge(app.stream("w", **TEXT)).peek(lambda key, value: None)
    assert counts(app, **UNEQUAL, z=1, w=2) == UNEQUAL | {"z": 1, "w": 2}


def test_a_repartition_behind_the_merge_is_the_way_out_with_the_larger_count() -> None:
    app = App("a")
    merged = app.stream(["x", "y"], **TEXT)
    merged.repartition(name="r").group_by_key().count(store="n")
    assert counts(app, **UNEQUAL) == UNEQUAL | {"a-r-repartition": 4}


def test_a_repartition_of_one_side_gets_the_count_of_the_other() -> None:
    app = App("a")
    app.stream("x", **TEXT).merge(app.stream("y", **TEXT).repartition(name="r")).group_by_key(
        **TEXT
    ).count(store="n")
    assert counts(app, **UNEQUAL) == UNEQUAL | {"a-r-repartition": 4}


def test_repartition_topics_that_meet_in_a_store_have_the_larger_count() -> None:
    app = App("a")
    one, other = (app.stream(t, **TEXT).repartition(name=f"r{t}") for t in "xy")
    one.merge(other).group_by_key().count(store="n")
    assert counts(app, **UNEQUAL) == UNEQUAL | {"a-rx-repartition": 4, "a-ry-repartition": 4}


def test_each_store_has_topics_of_its_own() -> None:
    app = App("a")
    x, y = app.stream("x", **TEXT), app.stream("y", **TEXT)
    x.group_by_key().count(store="of-x")
    y.group_by_key().count(store="of-y")
    x.merge(y).to("both")
    assert counts(app, **UNEQUAL) == UNEQUAL


def test_a_processor_that_is_let_off_does_not_let_off_what_follows() -> None:
    app = App("a")
    app.add_store(Store.persistent("shared", key=serdes.string, value=serdes.int64))
    app.stream(["x", "y"], **TEXT).process_values(
        Counter, value=serdes.int64, co_partitioned=False
    ).group_by_key().count(store="n")
    with pytest.raises(TopologyError, match="store 'n'"):
        counts(app, **UNEQUAL)


def test_a_join_demands_equal_counts_whatever_a_merge_says() -> None:
    app = App("a")
    merged = app.stream(["x", "y"], **TEXT, co_partitioned=False)
    merged.join(app.table("t", **TEXT), lambda left, right: left)
    with pytest.raises(TopologyError, match="'t' has 4, 'x' has 4, 'y' has 3"):
        counts(app, **UNEQUAL, t=4)


def test_a_cogroup_names_the_topics_without_a_way_out_that_it_does_not_have() -> None:
    app = App("a")
    x, y = (app.stream(topic, **TEXT).group_by_key() for topic in "xy")
    x.cogroup(lambda key, value, n: n + 1).cogroup(y, lambda key, value, n: n + 1).aggregate(
        int, value=serdes.int64
    )
    with pytest.raises(TopologyError, match=BOTH_NAMED) as raised:
        counts(app, **UNEQUAL)
    assert "co_partitioned" not in str(raised.value)


def test_a_global_tables_store_brings_no_topics_together() -> None:
    class Read(Processor[str, str, str, str]):
        stores = ("rates",)

        def process(self, record: Record[str, str]) -> None: ...

    app = App("a")
    app.global_table("rates", **TEXT, store="rates")
    app.stream(["x", "y"], **TEXT).process(Read)
    assert counts(app, **UNEQUAL) == UNEQUAL


def test_the_application_does_not_start() -> None:
    app = App("a")
    merge_and_count(app)
    with pytest.raises(TopologyError, match=BOTH_NAMED):
        check_topics(app.topology(), UNEQUAL, "here:9092")


def test_partitions_that_one_topic_gets_later_end_the_threads_with_the_same_words() -> None:
    app = App("a")
    merge_and_count(app)
    kafka = Kafka({"x": 3, "y": 3})
    assignor = StreamsPartitionAssignor(app.topology(), StreamsConfig(), FakeAdmin(kafka, Script()))
    members = {"m": SubscriptionInfo((), topology=assignor.declared)}
    assignor.assign_group(members)
    kafka.grow("x", 4)
    assert assignor.mend_topics_and_compare_inputs()
    with pytest.raises(StreamsError, match=BOTH_NAMED):
        assignor.assign_group(members)


def test_the_leader_learns_of_it_with_the_declared_topology() -> None:
    app = App("a")
    merge_and_count(app)
    declared = decode_topology(encode_topology(declare_topology(describe_topology(app.topology()))))
    with pytest.raises(TopologyError, match=BOTH_NAMED):
        declared.derive_partition_counts(UNEQUAL)


def test_a_driver_refuses_unequal_counts_too() -> None:
    app = App("a")
    merge_and_count(app)
    with pytest.raises(StreamsError, match=BOTH_NAMED):
        TopologyTestDriver(app, partitions=UNEQUAL)


def test_what_a_join_demands_already_is_not_declared_twice() -> None:
    app = App("a")
    app.stream("x", **TEXT).join(app.table("y", **TEXT), lambda left, right: left)
    assert app.topology().copartitioned == (frozenset({"x", "y"}),)
