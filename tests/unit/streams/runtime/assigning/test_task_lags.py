"""Test how far the leader takes each directory's state to be behind its changelogs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from streams import App, Store, serdes
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.membership.protocol import RUNNING_OFFSET
from streams.runtime.assigning.task_lags import (
    TaskChangelogs,
    combine_offsets,
    compute_lags,
    estimate_end_offset_sums,
    fetch_end_offset_sums,
    list_task_changelogs,
)
from streams.topology.build import Topology
from streams.topology.declared import declare_topology, decode_topology, encode_topology
from streams.topology.description import describe_topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

COUNTS = {"lines": 2, "users": 2, "plain": 2, "a-c-changelog": 2, "a-c-repartition": 2}


def topology() -> Topology:
    """Build a topology with a count, a table that its topic restores, and a mere copy."""
    app = App("a", topology_optimization="all")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    lines.group_by_key().count(store="c")
    lines.group_by_key().count(store=Store.persistent("unlogged", logged=False))
    app.table("users", key=serdes.string, value=serdes.string, store="u")
    app.stream("plain", key=serdes.string, value=serdes.string).to("out")
    return app.topology()


def changelogs_of(counts: dict[str, int]) -> TaskChangelogs:
    subs = dict(declare_topology(describe_topology(topology())).subtopologies)
    tasks = [f"{n}_{p}" for n, p in itertools.product(subs, range(2))]
    return list_task_changelogs("a", subs, tasks, counts)


def test_tasks_with_a_changelog_have_state_and_those_of_a_table_follow_its_topic() -> None:
    found = changelogs_of(COUNTS)
    assert found.ending == {
        "0_0": [Partition("a-c-changelog", 0)],
        "0_1": [Partition("a-c-changelog", 1)],
        "1_0": [],
        "1_1": [],
    }
    assert found.committed["1_1"] == [Partition("users", 1)]
    assert found.stateful_tasks == {"0_0", "0_1", "1_0", "1_1"}


def test_a_changelog_that_does_not_exist_yet_is_not_asked_for() -> None:
    counts = {topic: count for topic, count in COUNTS.items() if topic != "a-c-changelog"}
    found = changelogs_of(counts)
    assert found.ending["0_0"] == []
    assert "0_0" in found.stateful_tasks


def test_a_topology_that_was_declared_in_bytes_has_the_same_changelogs() -> None:
    declared = declare_topology(describe_topology(topology()))
    decoded = decode_topology(encode_topology(declared))
    assert [sub.list_changelogs("a") for sub in decoded.subtopologies.values()] == [
        ["a-c-changelog"],
        ["users"],
        [],
    ]


@pytest.mark.parametrize("is_table", [True, False])
def test_ends_are_fetched_in_one_call_and_summed_by_task(*, is_table: bool) -> None:
    kafka, script = Kafka(dict.fromkeys(("x", "y", "users"), 2)), Script()
    for topic, number, count in (("x", 0, 3), ("y", 0, 4), ("x", 1, 5)):
        kafka.load(Partition(topic, number), *[("k", "v")] * count)
    changelogs = TaskChangelogs(
        {"0_0": [Partition("x", 0), Partition("y", 0)], "0_1": [Partition("x", 1)]},
        {"0_0": [], "0_1": [Partition("users", 0), Partition("users", 1)] if is_table else []},
    )
    asked: list[Sequence[Partition]] = []

    def fetch_committed(partitions: Sequence[Partition]) -> CommittedOffsets:
        asked.append(partitions)
        return CommittedOffsets({Partition("users", 0): OffsetAndMetadata(70, "")}, [])

    sums = fetch_end_offset_sums(changelogs, FakeAdmin(kafka, script), fetch_committed)
    assert sums == {"0_0": 7, "0_1": 75 if is_table else 5}
    assert script.calls == ["admin.fetch_available_latest_offsets"]
    assert len(asked) == is_table


def test_a_task_whose_changelog_has_no_leader_is_left_out() -> None:
    x, y = Partition("x", 0), Partition("y", 0)

    class Admin(FakeAdmin):
        def fetch_available_latest_offsets(
            self, partitions: Sequence[Partition], timeout_s: float = 0.0
        ) -> dict[Partition, int]:
            return {x: 3}

    changelogs = TaskChangelogs({"0_0": [x], "0_1": [x, y]}, {"0_0": [], "0_1": []})
    admin = Admin(Kafka({"x": 1, "y": 1}), Script())
    sums = fetch_end_offset_sums(changelogs, admin, lambda _: CommittedOffsets({}, []))
    assert sums == {"0_0": 3}


def test_the_furthest_copy_of_a_task_that_nobody_runs_is_taken_to_be_up_to_date() -> None:
    copies = [{"0_0": 5, "0_1": 7}, {"0_0": 9}, {"0_2": 1}]
    assert estimate_end_offset_sums(["0_0", "0_1", "0_3"], copies) == {
        "0_0": 9,
        "0_1": 7,
        "0_3": 0,
    }


def test_the_member_that_runs_a_task_knows_the_state_of_a_directory_best() -> None:
    said = [{"0_0": 5, "0_1": RUNNING_OFFSET}, {"0_0": 9, "0_1": 8, "0_2": 0}, {"0_0": 7}]
    for order in itertools.permutations(said):
        assert combine_offsets(order) == {"0_0": 9, "0_1": RUNNING_OFFSET, "0_2": 0}


@pytest.mark.parametrize(
    ("offsets", "running", "lag"),
    [
        ({}, set(), 100),
        ({"0_0": 90}, set(), 10),
        ({"0_0": 100}, set(), 0),
        ({"0_0": RUNNING_OFFSET}, {"0_0"}, 0),
        ({}, {"0_0"}, 0),
        ({"0_0": RUNNING_OFFSET}, set(), 100),
        ({"0_0": 101}, set(), 100),
    ],
    ids=[
        "no state",
        "behind",
        "up to date",
        "runs",
        "runs, and names no offset",
        "says so, and has lost it",
        "another changelog of that name",
    ],
)
def test_a_lag_is_what_is_to_be_restored(
    offsets: dict[str, int], running: set[str], lag: int
) -> None:
    assert compute_lags(offsets, {"0_0": 100}, running) == {"0_0": lag}
