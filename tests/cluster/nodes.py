"""Run three nodes of Apache Kafka as one cluster: KRaft, combined roles, replication factor 3.

A node can be killed, paused, stopped, started again on its data, given another port for its
clients, and cut off from the others where each has a network namespace (`network.py`). Its
listeners for clients, for other brokers and for controllers are three. Each node is in a rack of
its own.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from tests.brokers import SETTINGS
from tests.cluster.network import NodeNetwork
from tests.kafka.server import CLUSTER_ID, JVM_FLAGS, PROPERTIES, class_path, java
from tests.processes import HOST, ServerProcess, answers, free_ports, wait_until

NODES = (1, 2, 3)
SESSION_MS = 6_000
"""For how long a node that is silent keeps what it leads."""
_HEAP_FLAGS = ("-Xmx384m", "-Xms128m")
_PROPERTIES: Mapping[str, str] = {
    **PROPERTIES,
    **SETTINGS,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": str(SESSION_MS),
    "group.initial.rebalance.delay.ms": "0",
    "num.replica.fetchers": "1",
    "replica.fetch.wait.max.ms": "50",
}
_REQUEST_S = 30.0


def name_rack(number: int) -> str:
    """Return the rack of a node."""
    return f"rack-{number}"


def list_missing(listed: ClusterMetadata, numbers: set[int]) -> list[str]:
    """List nodes outside the cluster and partitions that they are not in sync with."""
    lacking = [
        f"{name}-{part.id}: leader {part.leader}, in sync {part.isrs}"
        for name, topic in listed.topics.items()
        for part in topic.partitions.values()
        if not set(part.isrs) >= numbers & set(part.replicas)
    ]
    away = numbers - listed.brokers.keys()
    return [*(f"node {number} is not listed" for number in away), *lacking]


class Node(ServerProcess):
    """Represents one node of a cluster."""

    def __init__(self, number: int, ports: Sequence[int], network: NodeNetwork | None) -> None:
        super().__init__(f"kafka-{number}")
        self.number = number
        self.host = HOST if network is None else network.address_of(number)
        self._enter = () if network is None else network.enter(number)
        self.data_dir = self.directory / "data"
        self.properties_path = self.directory / "server.properties"
        self.port, self.internal_port, self.controller_port = ports
        self._quorum = ""

    @property
    def address(self) -> str:
        """Return the address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def voter(self) -> str:
        """Return the node as a voter of the quorum of controllers."""
        return f"{self.number}@{self.host}:{self.controller_port}"

    def write_properties(self, quorum: str) -> None:
        """Write the properties of a node whose controllers' quorum is this one."""
        self._quorum = quorum
        own = {
            "node.id": str(self.number),
            "listeners": f"PLAINTEXT://{self.host}:{self.port},INTERNAL://{self.host}:"
            f"{self.internal_port},CONTROLLER://{self.host}:{self.controller_port}",
            "controller.quorum.voters": quorum,
            "log.dirs": str(self.data_dir),
            "broker.rack": name_rack(self.number),
        }
        lines = "".join(f"{name}={value}\n" for name, value in {**_PROPERTIES, **own}.items())
        self.properties_path.write_text(lines)

    def copy_format(self, formatted: Path) -> None:
        """Take over the formatted directory of another node, as this node's own.

        A JVM that formats takes as long as one that starts.
        """
        shutil.copytree(formatted, self.data_dir)
        meta = self.data_dir / "meta.properties"
        changed = {
            "node.id": str(self.number),
            "directory.id": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        }
        lines = [line.partition("=") for line in meta.read_text().splitlines()]
        meta.write_text(
            "".join(f"{name}{sep}{changed.get(name, value)}\n" for name, sep, value in lines)
        )

    def launch(self) -> None:
        """Start the process, and wait for nothing."""
        flags = [flag for flag in JVM_FLAGS if not flag.startswith(("-Xmx", "-Xms"))]
        self.spawn(
            [
                *(*self._enter, "java", *_HEAP_FLAGS, *flags, "-cp", class_path()),
                *("kafka.Kafka", str(self.properties_path)),
            ]
        )

    def wait_until_answering(self) -> None:
        """Wait until the node answers its clients. Raises StartFailed."""
        self.wait_until_ready(lambda: answers(self.port, self.host))

    def change_port(self, port: int) -> None:
        """Let the node listen on another port for its clients from its next start on."""
        self.port = port
        self.write_properties(self._quorum)

    def pause(self) -> None:
        """Stop the process with SIGSTOP: its connections stay open, and it answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self.resume()  # a paused process would not end
        super().end(number)


class KafkaCluster:
    """Represents a cluster of three nodes, on this machine's own network or in namespaces."""

    kind = "cluster"

    def __init__(self, network: NodeNetwork | None = None) -> None:
        """Create the nodes, each in its namespace of the network if there is one."""
        ports = free_ports(3 * len(NODES))  # at once, so that no two are the same
        self.nodes = {
            number: Node(number, ports[3 * at : 3 * at + 3], network)
            for at, number in enumerate(NODES)
        }

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    def start(self) -> None:
        """Format and start all nodes at once, and wait until each of them is in the cluster."""
        quorum = ",".join(node.voter for node in self.nodes.values())
        first, *others = self.nodes.values()
        for node in self.nodes.values():
            node.write_properties(quorum)
        config = str(first.properties_path)
        java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
        for node in others:
            node.copy_format(first.data_dir)
        self.launch_nodes(self.nodes)

    def launch_nodes(self, numbers: Collection[int]) -> None:
        """Start nodes that don't run, all at once, and wait until they are in the cluster."""
        for number in numbers:
            self.nodes[number].launch()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda number: self.nodes[number].wait_until_answering(), numbers))
        self.wait_for_nodes(numbers)

    def wait_for_nodes(self, numbers: Collection[int]) -> None:
        """Wait until these nodes are in the cluster, and in sync with all of their partitions."""
        missing: list[str] = []

        def are_in_sync() -> bool:
            # A new client for each look: a node that starts names no nodes at first, and a client
            # of librdkafka that is told of none may find none again.
            admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
            try:
                missing[:] = list_missing(admin.list_topics(timeout=_REQUEST_S), set(numbers))
            except KafkaException as error:  # no node has answered
                missing[:] = [str(error)]
            return not missing

        wait_until(
            are_in_sync,
            what=lambda: f"nodes {[*numbers]} are not in sync: {missing}\n{self.log_tail()}",
        )

    def others_miss(self, number: int) -> bool:
        """Return whether the other nodes have taken a node out of the cluster's metadata."""
        addresses = [node.address for node in self.nodes.values() if node.number != number]
        admin = AdminClient({"bootstrap.servers": ",".join(addresses)})
        return number not in admin.list_topics(timeout=_REQUEST_S).brokers

    def restart(self, number: int) -> None:
        """Start a node again on its data, after `kill` or `stop`; one that runs is stopped."""
        self.nodes[number].stop()
        self.launch_nodes([number])

    def log_tail(self) -> str:
        return "\n".join(f"{node.name}:\n{node.log_tail(15)}" for node in self.nodes.values())

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()
            node.close()
