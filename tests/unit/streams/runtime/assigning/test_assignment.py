"""Test that the leader creates internal topics and assigns each task to one member."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, StreamsError, serdes
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, OutcomeUnknown
from streams.graph.nodes import (
    Graph,
    SinkNode,
    SourceNode,
    StoreKind,
    StoreSpec,
)
from streams.membership.protocol import SubscriptionInfo, decode_assignment, encode_assignment
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.internal_topics import changelog_settings
from streams.runtime.assigning.required_topics import check_topics
from streams.runtime.assigning.topology_versions import find_tasks
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology, build_topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka


def words() -> Topology:
    """Build a topology that counts `lines` by value through a repartition topic into `out`."""
    app = App("a")
    stream = app.stream("lines", key=serdes.string, value=serdes.string)
    grouped = stream.group_by(lambda key, value: value, key=serdes.string)
    grouped.count(store="c").to_stream().to("out")
    return app.topology()


class Planning:
    """Holds an assignor and the in-memory cluster whose topics it sees."""

    def __init__(
        self, topics: dict[str, int], replication_factor: int = 1, cut_retention_ms: int = 0
    ) -> None:
        self.kafka = Kafka(topics)
        self.admin = FakeAdmin(self.kafka, Script())
        config = StreamsConfig(
            replication_factor=replication_factor, cut_retention_ms=cut_retention_ms
        )
        self.planner = StreamsPartitionAssignor(words(), config, self.admin)
        self.nobody = SubscriptionInfo((), topology=self.planner.declared)
        """What a member says that runs nothing."""


def test_internal_topics_are_made_with_the_partitions_of_what_feeds_them() -> None:
    world = Planning({"lines": 3, "out": 1})
    world.planner.assign_group({"m": world.nobody})
    made = {topic: count for topic, (count, _, _) in world.admin.created.items()}
    assert made == {"a-c-repartition": 3, "a-c-changelog": 3}


def test_a_changelog_is_compacted_and_keeps_the_records_times() -> None:
    world = Planning({"lines": 1, "out": 1})
    world.planner.assign_group({"m": world.nobody})
    _, settings, _ = world.admin.created["a-c-changelog"]
    assert settings == {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


@pytest.mark.parametrize(
    ("store", "settings"),
    [
        ({}, {"cleanup.policy": "compact"}),
        (
            {"kind": StoreKind.WINDOW, "retention_ms": 3_600_000},
            {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"},
        ),
        (
            {"kind": StoreKind.SESSION, "retention_ms": 0},
            {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"},
        ),
        (
            {"kind": StoreKind.WINDOW, "retention_ms": 2**63 - 1},
            {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"},
        ),
        (
            {"kind": StoreKind.VERSIONED, "history_ms": 1_000},
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
        ),
        (
            {
                "kind": StoreKind.WINDOW,
                "retention_ms": 1,
                "topic_settings": {"retention.ms": "5", "segment.ms": "6"},
            },
            {
                "cleanup.policy": "compact,delete",
                "retention.ms": "5",
                "retention.bytes": "-1",
                "segment.ms": "6",
            },
        ),
    ],
    ids=["key-value", "window", "session", "window for ever", "versioned", "the user's over ours"],
)
def test_a_changelog_is_kept_as_its_kind_of_store_needs_it(
    store: dict[str, Any], settings: dict[str, str]
) -> None:
    spec = StoreSpec(name="s", key=serdes.string, value=serdes.string, **store)
    assert changelog_settings(spec) == {**settings, "message.timestamp.type": "CreateTime"}


@pytest.mark.parametrize(
    ("store", "lag_ms"),
    [
        ({}, 5_000),
        ({"kind": StoreKind.WINDOW, "retention_ms": 1}, 5_000),
        ({"kind": StoreKind.VERSIONED, "history_ms": 1_000}, None),
        ({"topic_settings": {"min.compaction.lag.ms": "7"}}, 7),
    ],
    ids=["key-value", "window", "never compacted", "the user's over ours"],
)
def test_a_changelog_keeps_what_a_cut_needs(store: dict[str, Any], lag_ms: int | None) -> None:
    spec = StoreSpec(name="s", key=serdes.string, value=serdes.string, **store)
    expected = None if lag_ms is None else str(lag_ms)
    assert changelog_settings(spec, 5_000).get("min.compaction.lag.ms") == expected


@pytest.mark.parametrize("error", [OutcomeUnknown("no answer"), StreamsError("not authorized")])
def test_tasks_are_assigned_though_the_lag_of_a_changelog_can_not_be_asked(
    error: Exception,
) -> None:
    world = Planning({"lines": 1, "out": 1, "a-c-changelog": 1}, cut_retention_ms=100)
    world.admin.script.fail("admin.fetch_topic_settings", error)
    assert world.planner.assign_group({"m": world.nobody})["m"].tasks


@pytest.mark.parametrize(("wanted_ms", "told"), [(0, False), (50, False), (100, True)])
def test_a_changelog_that_was_made_with_a_shorter_lag_is_told(
    caplog: pytest.LogCaptureFixture, wanted_ms: int, told: bool
) -> None:
    topics = {"lines": 1, "out": 1}
    world = Planning(topics | {"a-c-changelog": 1}, cut_retention_ms=wanted_ms)
    world.kafka.topic_settings["a-c-changelog"] = {"min.compaction.lag.ms": "50"}
    world.planner.assign_group({"m": world.nobody})
    assert ("'a-c-changelog' has min.compaction.lag.ms=50" in caplog.text) is told
    fresh = Planning(topics, cut_retention_ms=wanted_ms)
    caplog.clear()
    fresh.planner.assign_group({"m": fresh.nobody})
    _, settings, _ = fresh.admin.created["a-c-changelog"]
    assert int(settings.get("min.compaction.lag.ms", 0)) == wanted_ms
    assert not caplog.text


def test_a_store_that_is_not_logged_has_no_changelog() -> None:
    app = App("a")
    stream = app.stream("lines", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store=Store.persistent("c", logged=False))
    kafka = Kafka({"lines": 1})
    admin = FakeAdmin(kafka, Script())
    planner = StreamsPartitionAssignor(app.topology(), StreamsConfig(), admin)
    planner.assign_group({"m": SubscriptionInfo((), topology=planner.declared)})
    assert admin.created == {}


def test_a_repartition_topic_keeps_all_that_was_not_read() -> None:
    world = Planning({"lines": 1, "out": 1})
    world.planner.assign_group({"m": world.nobody})
    _, settings, _ = world.admin.created["a-c-repartition"]
    assert settings == {
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
    }


def test_internal_topics_get_the_replication_factor_of_the_settings() -> None:
    world = Planning({"lines": 1, "out": 1}, replication_factor=3)
    world.planner.assign_group({"m": world.nobody})
    assert {factor for _, _, factor in world.admin.created.values()} == {3}


def test_topics_that_are_there_are_left_as_they_are() -> None:
    world = Planning({"lines": 2, "out": 1, "a-c-repartition": 2})
    world.planner.assign_group({"m": world.nobody})
    assert world.admin.created.keys() == {"a-c-changelog"}
    world.admin.created.clear()
    world.planner.assign_group({"m": world.nobody})
    assert world.admin.created == {}


@pytest.mark.parametrize("topic", ["a-c-changelog", "a-c-repartition"])
def test_an_internal_topic_with_other_partitions_is_refused_with_both_numbers(topic: str) -> None:
    world = Planning({"lines": 3, "out": 1, topic: 2})
    with pytest.raises(StreamsError, match=rf"'{topic}' has 2 partitions .* needs 3") as raised:
        world.planner.assign_group({"m": world.nobody})
    assert "start over with `millrace group reset" in str(raised.value)
    assert world.admin.created == {}


def test_an_input_that_was_deleted_is_named() -> None:
    world = Planning({"out": 1})
    with pytest.raises(StreamsError, match=r"input topics \['lines'\] do not exist any more"):
        world.planner.assign_group({"m": world.nobody})


def test_topics_that_are_missing_at_the_start_are_all_named_with_the_broker() -> None:
    expected = "topics 'lines', 'out' do not exist on here:9092: create them "
    expected += r"\(`millrace create-topics lines out`\)"
    with pytest.raises(ConfigError, match=expected):
        check_topics(words(), {"other": 1}, "here:9092")


def test_a_dead_letter_topic_that_is_missing_at_the_start_is_named() -> None:
    with pytest.raises(ConfigError, match="dead-letter topic 'dead' does not exist on here:9092"):
        check_topics(words(), {"lines": 1, "out": 1}, "here:9092", ["dead", "out"])


def test_internal_topics_may_be_missing_at_the_start() -> None:
    check_topics(words(), {"lines": 1, "out": 1}, "here:9092")


def test_there_is_a_task_for_each_partition_of_each_sub_topology() -> None:
    world = Planning({"lines": 2, "out": 1})
    assert find_tasks(world.planner.declared.subtopologies, {"lines": 2, "a-c-repartition": 2}) == {
        "0_0": [Partition("lines", 0)],
        "0_1": [Partition("lines", 1)],
        "1_0": [Partition("a-c-repartition", 0)],
        "1_1": [Partition("a-c-repartition", 1)],
    }


def test_a_task_beyond_a_topics_last_partition_reads_the_others_only() -> None:
    graph = Graph()
    sources = tuple(
        SourceNode(name=topic, topic=topic, key=serdes.string, value=serdes.string)
        for topic in ("wide", "narrow")
    )
    sink = SinkNode(name="s", parents=sources, topic="out", key=serdes.string, value=serdes.string)
    for node in (*sources, sink):
        graph.add_node(node)
    planner = StreamsPartitionAssignor(
        build_topology("a", graph), StreamsConfig(), FakeAdmin(Kafka(), Script())
    )
    assert find_tasks(planner.declared.subtopologies, {"wide": 2, "narrow": 1}) == {
        "0_0": [Partition("narrow", 0), Partition("wide", 0)],
        "0_1": [Partition("wide", 1)],
    }


def test_every_task_goes_to_one_member_with_the_partitions_that_it_reads() -> None:
    world = Planning({"lines": 3, "out": 1})
    plan = world.planner.assign_group({"m": world.nobody, "n": world.nobody})
    assert plan.keys() == {"m", "n"}
    given = sorted(task for assigned in plan.values() for task in assigned.tasks)
    assert given == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
    topics = {"0": "lines", "1": "a-c-repartition"}
    for assigned in plan.values():
        named = {(topics[task[0]], int(task[2:])) for task in assigned.tasks}
        assert set(assigned.partitions) == named


def test_tasks_stay_with_the_members_that_run_them() -> None:
    world = Planning({"lines": 2, "out": 1})
    before = {
        "m": world.nobody._replace(tasks=("0_1", "1_0"), generation=1),
        "n": world.nobody._replace(tasks=("0_0", "1_1"), generation=1),
    }
    plan = world.planner.assign_group(before)
    assert {member: assigned.tasks for member, assigned in plan.items()} == {
        member: subscribed.tasks for member, subscribed in before.items()
    }


def test_inputs_with_more_partitions_than_were_assigned_are_seen() -> None:
    world = Planning({"lines": 2, "out": 1})
    world.planner.assign_group({"m": world.nobody})
    assert not world.planner.mend_topics_and_compare_inputs()
    world.kafka.create_topic("another", 7)
    assert not world.planner.mend_topics_and_compare_inputs()
    world.kafka.grow("lines", 3)
    assert world.planner.mend_topics_and_compare_inputs()


def test_a_leader_that_has_not_assigned_takes_the_inputs_as_it_finds_them() -> None:
    world = Planning({"lines": 2, "out": 1})
    assert not world.planner.mend_topics_and_compare_inputs()
    world.kafka.grow("lines", 3)
    assert world.planner.mend_topics_and_compare_inputs()


def test_a_leader_that_comes_back_sees_partitions_that_were_added_meanwhile() -> None:
    """Test that a static member which leads again, and assigns nothing, compares the inputs."""
    world = Planning({"lines": 2, "out": 1})
    assigned = world.planner.assign_group({"m": world.nobody})["m"]
    for count, is_changed in ((2, False), (3, True)):
        back = Planning({"lines": count, "out": 1}).planner
        back.adopt_assignment(decode_assignment(encode_assignment(assigned)))
        assert back.mend_topics_and_compare_inputs() is is_changed
        assert back.mend_topics_and_compare_inputs() is is_changed  # until it has assigned


def test_an_input_that_is_deleted_while_it_is_read_is_named() -> None:
    world = Planning({"lines": 2, "out": 1})
    world.planner.assign_group({"m": world.nobody})
    world.kafka.delete("lines")
    with pytest.raises(StreamsError, match=r"'lines'.*do not exist any more"):
        world.planner.mend_topics_and_compare_inputs()
