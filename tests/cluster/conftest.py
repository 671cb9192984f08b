"""Provide a cluster of three nodes, and applications on it, which are ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import skip_if_missing
from tests.cluster.application import ClusterApplication
from tests.cluster.network import NamespacesRefused, NodeNetwork
from tests.cluster.nodes import NODES, KafkaCluster


@pytest.fixture(scope="session")
def found_network() -> Iterator[NodeNetwork | NamespacesRefused]:
    """Provide the network in which the nodes are, or the reason why it can't be had."""
    skip_if_missing("kafka")
    try:
        made = NodeNetwork(NODES)
    except NamespacesRefused as error:
        yield error
        return
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def network(found_network: NodeNetwork | NamespacesRefused) -> NodeNetwork:
    """Provide the network of the nodes; without it the test is skipped."""
    if isinstance(found_network, NamespacesRefused):
        pytest.skip(f"no node can be cut off on this machine: {found_network}")
    return found_network


@pytest.fixture(scope="session")
def running_cluster(
    found_network: NodeNetwork | NamespacesRefused,
) -> Iterator[KafkaCluster]:
    made = KafkaCluster(None if isinstance(found_network, NamespacesRefused) else found_network)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def cluster(running_cluster: KafkaCluster) -> KafkaCluster:
    """Provide the cluster with all of its nodes running, whatever the test before has left."""
    gone = [n for n in NODES if running_cluster.nodes[n].ended is not None]
    if gone:
        running_cluster.launch_nodes(gone)
    for node in running_cluster.nodes.values():
        node.resume()
    running_cluster.wait_for_nodes(NODES)
    return running_cluster


@pytest.fixture
def new_application(
    cluster: KafkaCluster, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., ClusterApplication]]:
    """Return a function that creates applications on the cluster."""
    made: list[ClusterApplication] = []

    def create(**more: object) -> ClusterApplication:
        made.append(ClusterApplication(cluster, unique("cluster"), tmp_path, **more))  # type: ignore[arg-type]
        return made[-1]

    yield create
    for application in made:
        application.close()


@pytest.fixture
def application(new_application: Callable[..., ClusterApplication]) -> ClusterApplication:
    """Provide an application whose two workers process records."""
    made = new_application()
    made.start()
    return made
