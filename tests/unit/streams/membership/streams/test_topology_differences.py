"""Test in what a group's topology differs from a worker's, by what a broker tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from streams import App, serdes
from streams.membership.streams.topology_differences import (
    find_topology_differences,
    read_described_topology,
)
from streams.membership.streams.topology_request import TopologyToSend, build_topology
from streams.runtime.assigning.topology_to_send import describe_topology_to_send
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from streams.topology.streams_group_topology import SentTopology

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
CHANGELOG, DEFAULT = "changelog 'a-x-changelog'", "the brokers' default"
PLAIN: Mapping[str, Any] = dict.fromkeys(
    ("Topology", "Subtopology", "TopicInfo", "KeyValue", "CopartitionGroup"), SimpleNamespace
)


def version(*stores: str, partitions: int | None = None, **settings: Any) -> TopologyToSend:
    """Return what a version sends that counts lines by their text in stores of these names."""
    app = App("a", **settings)
    lines = app.stream("lines", **TEXT).repartition(partitions=partitions, name="by", **TEXT)
    for store in stores:
        lines.group_by_key().count(store=store)
    topology = app.topology()
    declared = declare_topology(describe_topology(topology))
    return describe_topology_to_send(topology, declared, app.config)


def describe(sent: TopologyToSend, *, partitions: int = 0) -> SentTopology:
    """Return a topology as the broker describes it, with so many partitions where it derived them.

    The topics of a description have the fields of those that are sent.
    """
    subtopologies = build_topology(PLAIN, sent).subtopologies
    for sub in subtopologies:
        for info in (*sub.state_changelog_topics, *sub.repartition_source_topics):
            info.partitions = info.partitions or partitions
    return read_described_topology(subtopologies)


ONE = version("x")


@pytest.mark.parametrize("partitions", [0, 4])
def test_the_same_topology_differs_in_nothing_derived_or_not(partitions: int) -> None:
    assert find_topology_differences(describe(ONE, partitions=partitions), ONE) == ()


@pytest.mark.parametrize(
    ("own", "clause"),
    [
        (version("x", "y"), "changelog 'a-y-changelog' is of this worker only"),
        (version("z"), "changelog 'a-x-changelog' is of the group only"),
        (
            version("x", topic_defaults={"segment.ms": "7"}),
            f"{CHANGELOG} has segment.ms unset of the group, and 7 of this worker",
        ),
        (
            version("x", cut_retention_ms=60_000),
            f"{CHANGELOG} has min.compaction.lag.ms unset of the group, and 60000 of this worker",
        ),
        (
            version("x", replication_factor=3),
            f"{CHANGELOG} has replication factor {DEFAULT} of the group, and 3 of this worker",
        ),
    ],
)
def test_each_difference_names_its_topic(own: TopologyToSend, clause: str) -> None:
    assert clause in find_topology_differences(describe(ONE), own)


def test_partitions_are_compared_where_both_are_declared() -> None:
    group, own = version("x", partitions=3), version("x", partitions=4)
    assert find_topology_differences(describe(group), own) == (
        "repartition topic 'a-by-repartition' has 3 partitions of the group, and 4 of this worker",
    )
    assert find_topology_differences(describe(group), ONE) == ()


def test_another_number_of_a_sub_topology_is_told() -> None:
    subs = {number + 1: sub for number, sub in ONE.declared.subtopologies.items()}
    moved = replace(ONE, declared=replace(ONE.declared, subtopologies=subs))
    found = find_topology_differences(describe(ONE), moved)
    assert "input 'lines' is in sub-topology 0 of the group, and in 1 of this worker" in found
