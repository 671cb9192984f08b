"""Test an application on three nodes of Kafka, in trouble of each kind: results stay exact."""

from __future__ import annotations

import pytest

from tests.cluster.application import ClusterApplication
from tests.cluster.nodes import NODES

pytestmark = pytest.mark.sampled(1, by="test")


def test_each_node_is_killed_in_turn(application: ClusterApplication) -> None:
    cluster = application.cluster
    for number in NODES:
        with application.records_flow():
            application.wait_for_progress()
            cluster.nodes[number].kill()
            application.wait_for_progress()
        cluster.restart(number)
    application.finish()
