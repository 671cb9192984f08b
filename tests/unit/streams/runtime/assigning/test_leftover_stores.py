"""Test that one warning names an empty store and the leftover of another one beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.directory import StateDirectory
from streams import App, Store, serdes
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import World, build_counting_topology

TOPICS = {"in": 1, "out": 1}
OLD = "a-old-changelog"


class Leading:
    """Holds the assignor of a group's leader, a cluster with these topics, a state directory."""

    def __init__(self, directory: Path, *topics: str, store: str = "c") -> None:
        self.kafka = Kafka(TOPICS | dict.fromkeys(topics, 1))
        self.admin = FakeAdmin(self.kafka, Script())
        self.planner = StreamsPartitionAssignor(
            build_counting_topology(store), StreamsConfig(state_dir=directory), self.admin
        )

    def plan(self) -> None:
        self.planner.assign_group({"m": SubscriptionInfo((), topology=self.planner.declared)})


def test_a_renamed_store_is_told_of_with_the_changelog_that_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leading = Leading(tmp_path, OLD)
    leading.plan()
    (said,) = (record.getMessage() for record in caplog.records)
    assert "store 'c' begins empty, and changelog 'a-old-changelog' is left" in said
    assert "give it its old name (store='...'" in said
    caplog.clear()
    leading.plan()
    Leading(tmp_path, OLD, "a-c-changelog").plan()
    assert not caplog.records  # Later plans don't warn again.


def test_stores_of_a_version_that_runs_beside_this_one_are_not_taken_for_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    joining = Leading(tmp_path, OLD)
    joining.planner.adopt_assignment(
        AssignmentInfo(("0_0",), (("in", 0),), leader="another version")
    )
    assert "a-c-changelog" in joining.kafka.partition_counts
    assert "begins empty" not in caplog.text


def test_directories_that_are_left_are_named_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = StateDirectory(tmp_path, "a")
    for store in ("old", "c"):
        directory.build_store_path("0_0", store).mkdir(parents=True)
    Leading(tmp_path).plan()
    (said,) = (record.getMessage() for record in caplog.records)
    assert f"and {tmp_path}/a/*_*/old is left" in said


@pytest.mark.parametrize(
    "topics",
    [(), ("a-c-repartition", "b-old-changelog", "ab-old-changelog", "a-changelog", "old")],
    ids=["the first start", "topics of others"],
)
def test_nothing_is_told_where_nothing_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, topics: tuple[str, ...]
) -> None:
    leading = Leading(tmp_path, *topics)
    leading.plan()
    assert not caplog.records
    assert "admin.list_groups" not in leading.admin.script.calls


def test_changelogs_of_applications_whose_ids_begin_alike_are_not_taken_for_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leading = Leading(tmp_path, "a-eu-old-changelog", "a-us-old-changelog")
    leading.admin.group_ids.append("a-eu")
    StateDirectory(tmp_path, "a-us")
    leading.plan()
    assert not caplog.records


@pytest.mark.parametrize("error", [OutcomeUnknown("loading"), StreamsError("not authorized")])
def test_tasks_are_assigned_though_the_groups_can_not_be_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """Test that without the groups only leftover directories are named, and no changelogs.

    A leftover changelog may then be that of another application.
    """
    StateDirectory(tmp_path, "a").build_store_path("0_0", "old").mkdir(parents=True)
    leading = Leading(tmp_path, OLD)
    leading.admin.script.fail("admin.list_groups", error)
    leading.plan()
    assert "a-c-changelog" in leading.kafka.partition_counts
    assert f"begins empty, and {tmp_path}/a/*_*/old is left" in caplog.text


def test_a_store_that_is_there_is_not_told_of_whatever_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Leading(tmp_path, OLD, "a-c-changelog").plan()
    assert not caplog.records


def unlogged(name: str) -> Topology:
    return build_counting_topology(Store.persistent(name, logged=False))


def test_a_store_without_a_changelog_is_told_of_by_the_directory_that_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, told in (("old", 0), ("new", 1), ("new", 0)):
        caplog.clear()
        world = World(unlogged(name), tmp_path, partitions=2)
        world.run_until(lambda world=world: len(world.loop.tasks) == 2)  # type: ignore[misc]
        left = [r.getMessage() for r in caplog.records if "begins empty" in r.getMessage()]
        assert len(left) == told, name
        for each in left:
            assert "store 'new' begins empty" in each
            assert f"{tmp_path}/a/0_" in each
            assert "/old is left" in each


def test_a_store_with_a_changelog_that_comes_to_this_machine_is_not_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    StateDirectory(tmp_path, "a").build_store_path("0_0", "old").mkdir(parents=True)
    world = World(build_counting_topology(), tmp_path)
    world.kafka.load(Partition("in", 0), ("k", "x"))
    world.run_until(world.consumed)
    assert "begins empty" not in caplog.text


def test_two_stores_that_begin_are_told_of_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("a")
    for topic in ("in", "out"):
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        stream.group_by_key().count(store=f"of-{topic}")
    admin = FakeAdmin(Kafka(TOPICS | {OLD: 1}), Script())
    planner = StreamsPartitionAssignor(app.topology(), StreamsConfig(state_dir=tmp_path), admin)
    planner.assign_group({"m": SubscriptionInfo((), topology=planner.declared)})
    (said,) = (record.getMessage() for record in caplog.records)
    assert "store 'of-in', 'of-out' begins empty" in said


def test_a_store_that_is_added_to_others_is_not_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("a")
    for topic in ("in", "out"):
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        stream.group_by_key().count(store=f"of-{topic}")
    StateDirectory(tmp_path, "a").build_store_path("0_0", "of-in").mkdir(parents=True)
    admin = FakeAdmin(Kafka(TOPICS | {"a-of-in-changelog": 1}), Script())
    planner = StreamsPartitionAssignor(app.topology(), StreamsConfig(state_dir=tmp_path), admin)
    planner.assign_group({"m": SubscriptionInfo((), topology=planner.declared)})
    assert "a-of-out-changelog" in admin.created
    assert not caplog.records
