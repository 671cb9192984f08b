"""Run one node of a Kafka that has its metadata in ZooKeeper, which is started beside it.

Kafka 2.8 has no transactions with KRaft.
"""

from __future__ import annotations

import signal
import socket
from contextlib import suppress

from tests.kafka.server import JVM_FLAGS, PROPERTIES, RealKafka, class_path
from tests.processes import HOST, ServerProcess, free_ports

_OF_KRAFT = ("process.roles", "node.id", "controller.listener.names")
_SESSION_MS = 6_000
_FLAGS = ("-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true")


class ZooKeeper(ServerProcess):
    """Represents a ZooKeeper of one node, from Kafka's jars of a version."""

    def __init__(self, version: str) -> None:
        super().__init__("zookeeper")
        self._version = version
        self.port = 0

    def start(self) -> None:
        [self.port] = free_ports(1)
        data = self.directory / "data"
        self.spawn(
            [
                *("java", *JVM_FLAGS, *_FLAGS, "-cp", class_path(self._version)),
                *("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.port), str(data)),
            ]
        )
        self.wait_until_ready(self._accepts)

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), 1.0):
            return True
        return False


class ZooKeeperKafka(RealKafka):
    """Represents one Kafka node with a ZooKeeper of its own."""

    def start(self) -> None:
        self._zookeeper = ZooKeeper(self._version)
        self._zookeeper.start()
        super().start()

    def close(self) -> None:
        """End both, the node first, and remove their files."""
        super().close()
        self._zookeeper.close()

    def restart(self) -> None:
        """Start again on the same port and data; ZooKeeper has to forget the former session."""
        self.end(signal.SIGTERM)
        self._launch()

    def _write_properties(self, controller_port: int) -> None:
        properties = {
            **{name: value for name, value in PROPERTIES.items() if name not in _OF_KRAFT},
            "broker.id": "1",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
            "listeners": f"PLAINTEXT://{self._host}:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{self._host}:{self.port}",
            "zookeeper.connect": f"{HOST}:{self._zookeeper.port}",
            "zookeeper.session.timeout.ms": str(_SESSION_MS),
            "log.dirs": str(self.data_dir),
            **self._settings,
        }
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        self._properties_path.write_text(lines)

    def _format(self) -> None:
        """Do nothing: ZooKeeper gives the cluster its id."""
