"""Test an application on three nodes of Kafka, in trouble of each kind: results stay exact."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.application import ClusterApplication
from tests.cluster.network import NodeNetwork
from tests.cluster.nodes import NODES, SESSION_MS, KafkaCluster
from tests.cluster.placement import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Placement
from tests.processes import HOST, free_ports

pytestmark = pytest.mark.sampled(1, by="test")

STEPS = ("PROCESSED", "PRODUCED", "OFFSETS_SENT", "COMMITTED", "STORING", "STORED")
MINUTE_S = 60.0
CUT_OFF_S = 30.0


def test_each_node_is_killed_in_turn(application: ClusterApplication) -> None:
    cluster = application.cluster
    for number in NODES:
        with application.records_flow():
            application.wait_for_progress()
            cluster.nodes[number].kill()
            application.wait_for_progress()
        cluster.restart(number)
    application.finish()


def test_each_node_hangs_in_turn_for_longer_than_its_session(
    application: ClusterApplication,
) -> None:
    for node in application.cluster.nodes.values():
        with application.records_flow():
            application.wait_for_progress()
            node.pause()
            time.sleep(1.5 * SESSION_MS / 1_000)
            application.wait_for_progress()
            node.resume()
            application.wait_for_progress()
        application.cluster.wait_for_nodes(NODES)
    application.finish()


def test_all_nodes_are_restarted_one_after_the_other(application: ClusterApplication) -> None:
    with application.records_flow():
        for number in NODES:
            application.wait_for_progress()
            application.cluster.restart(number)
            application.wait_for_progress()
    application.finish()


def test_the_coordinators_move_at_each_step_of_a_commit(
    new_application: Callable[..., ClusterApplication], cluster: KafkaCluster
) -> None:
    application = new_application(session_ms=60_000)
    application.start(*(f"{step}:2" for step in STEPS))
    placement, worker = Placement(cluster.bootstrap_servers), application.one
    for _ in STEPS:
        with application.records_flow():
            application.wait_for_progress()
            worker.aim_at(worker.pid)
            worker.wait_until_ready(lambda: is_stopped(worker.pid))
            placement.move_leaders(OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
            os.kill(worker.pid, signal.SIGCONT)
            application.wait_for_progress()
    application.finish()


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_partitions_are_taken_from_their_leaders_nodes(application: ClusterApplication) -> None:
    placement = Placement(application.cluster.bootstrap_servers)
    trial = application.trial
    with application.records_flow():
        for topic in (trial.source, trial.changelog("totals"), OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            application.wait_for_progress()
            placement.move_replicas(topic)
            application.wait_for_progress()
    application.finish()


def test_two_of_three_nodes_are_away_for_a_minute(application: ClusterApplication) -> None:
    cluster = application.cluster
    with application.records_flow():
        application.wait_for_progress()
        for number in NODES[:2]:
            cluster.nodes[number].kill()
        time.sleep(MINUTE_S)
        application.check_running()
        cluster.launch_nodes(NODES[:2])
        application.wait_for_progress()
    application.finish()


def test_one_address_of_those_that_are_given_answers(
    new_application: Callable[..., ClusterApplication], cluster: KafkaCluster
) -> None:
    silent = [f"{HOST}:{port}" for port in free_ports(2)]
    application = new_application(servers=",".join([*silent, cluster.nodes[2].address]))
    application.start()
    with application.records_flow():
        cluster.nodes[1].kill()
        application.wait_for_progress()
    cluster.restart(1)
    application.finish()


def test_all_nodes_change_their_ports(
    new_application: Callable[..., ClusterApplication], cluster: KafkaCluster
) -> None:
    ports = free_ports(len(NODES))
    later = [f"{HOST}:{port}" for port in ports]
    application = new_application(servers=",".join([cluster.bootstrap_servers, *later]))
    application.start()
    for number in NODES:
        cluster.nodes[number].kill()
    for number, port in zip(NODES, ports, strict=True):
        cluster.nodes[number].change_port(port)
    cluster.launch_nodes(NODES)
    application.trial.change_servers(cluster.bootstrap_servers)
    with application.records_flow():
        application.wait_for_progress()
    application.finish()


def test_a_node_that_leads_everything_is_cut_off_from_all(
    network: NodeNetwork, application: ClusterApplication
) -> None:
    let_node_lead_everything(application, 1)
    with application.records_flow():
        application.wait_for_progress()
        with network.cut_off(1, from_clients=True):
            time.sleep(CUT_OFF_S)
            assert application.cluster.others_miss(1)
            application.wait_for_progress()
        application.wait_for_progress()
    application.cluster.wait_for_nodes(NODES)
    application.finish()


def test_a_node_that_leads_everything_is_cut_off_from_the_other_nodes(
    network: NodeNetwork, application: ClusterApplication
) -> None:
    """Cut off a node that goes on answering clients: that it leads, and has not written."""
    let_node_lead_everything(application, 1)
    with application.records_flow():
        application.wait_for_progress()
        with network.cut_off(1, from_clients=False):
            time.sleep(CUT_OFF_S)
            assert application.cluster.others_miss(1)
            application.check_running()
        application.wait_for_progress()
    application.cluster.wait_for_nodes(NODES)
    application.finish()


def let_node_lead_everything(application: ClusterApplication, node: int) -> None:
    trial = application.trial
    topics = (trial.source, trial.changelog("totals"), OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    Placement(application.cluster.bootstrap_servers).lead_all(node, *topics)
