"""Test which workers a store's partitions are said to be with."""

from __future__ import annotations

from streams.membership.protocol import AssignmentInfo, EndpointTasks
from streams.queries.store_hosts import StoreHost, StoreHosts
from tests.unit.streams.runtime.world import build_counting_topology

SUBTOPOLOGY = build_counting_topology().subtopologies[0]


def assigned(**endpoints: EndpointTasks) -> AssignmentInfo:
    return AssignmentInfo((), (), endpoints={f"{host}:1": each for host, each in endpoints.items()})


def test_the_newest_assignment_tells_active_tasks_before_standbys() -> None:
    older = assigned(a=EndpointTasks(("0_0", "0_1")))
    newer = assigned(a=EndpointTasks(("0_0",), ("0_1",)), b=EndpointTasks(("0_1", "1_0"), ("0_0",)))
    hosts = StoreHosts(SUBTOPOLOGY, lambda: [(5.0, newer), (3.0, older), (9.0, None)], lambda: 7.0)
    assert hosts.list_hosts() == [
        StoreHost("a", 1, 0, "active", 2.0),
        StoreHost("b", 1, 0, "standby", 2.0),
        StoreHost("b", 1, 1, "active", 2.0),
        StoreHost("a", 1, 1, "standby", 2.0),
    ]


def test_without_endpoints_nobody_is_named() -> None:
    assert StoreHosts(SUBTOPOLOGY, lambda: [(5.0, assigned())], lambda: 7.0).list_hosts() == []
