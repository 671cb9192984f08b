"""Run Apache Kafka as a process: KRaft, one node, loopback only, nothing kept.

Its jars are those of `pom.xml` beside this file (`jars.py`).
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kafka.class_data import ClassData
from tests.kafka.jars import Jars
from tests.kafka.versions import YARDSTICK
from tests.processes import HANG_LIMIT_S, HOST, ServerProcess, StartFailed, answers, free_ports

_POM = Path(__file__).with_name("pom.xml")
JARS = Jars(_POM, "kafka", YARDSTICK)
CLUSTER_ID = "bWlsbHJhY2UtdGVzdHMtMQ"
PORT_ATTEMPTS = 3
RESTARTED_SESSION_MS = 4_000
"""After a kill a node is let in again when its session is over, by the settings of its restart."""
RESTARTED_EXPIRY_MS = 10_000
"""Kafka's default, by which a node that starts again aborts nothing until it has been let in.

Before that it takes partitions for deleted, and leaves out the markers (`tests.kafka.markers`).
"""
_SERVER = "kafka.Kafka"
_SHARES = "-Xshare:auto"
# For a small machine and a short life: little heap, one collector thread, no second compiler.
JVM_FLAGS = (
    "-Xmx512m",
    "-Xms256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    _SHARES,
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
# One node has one replica of everything; few partitions make starts quick. A node that is held up
# for half its session loses its partitions: a busy machine holds it up for seconds.
PROPERTIES: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.segment.bytes": "1048576",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "30000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "3600000",
}

FEATURES = ("group.version", "transaction.version")
_LOGGER = "slf4j-simple-1.7.36.jar"


def missing(version: str = YARDSTICK) -> str | None:
    """Return what this machine lacks for real Kafka, as a reason to skip; None if it has all."""
    return Jars(_POM, "kafka", version).missing()


def class_path(version: str = YARDSTICK) -> str:
    """Return the class path of Kafka's jars in a version, fetched now if they are not there.

    Those before 4.0 bring another logger, which is silent without a file of its own: ours is first.
    """
    jars = Jars(_POM, "kafka", version)
    path = jars.class_path()
    return f"{jars.libs / _LOGGER}:{path}"


def java(*arguments: str, timeout_s: float = HANG_LIMIT_S, version: str = YARDSTICK) -> str:
    """Run one of Kafka's tools to its end and return all that it printed."""
    path = class_path(version)
    with tempfile.TemporaryDirectory(prefix="millrace-java-") as directory:
        shared = ClassData.find(Jars(_POM, "kafka", version).libs, arguments[0], Path(directory))
        done = subprocess.run(
            ["java", *JVM_FLAGS, *shared.flags, "-cp", path, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        shared.keep_draft(done.returncode)
    if done.returncode:
        raise StartFailed(f"{arguments}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class RealKafka(ServerProcess):
    """Represents one Kafka node; `settings` are broker properties, `jvm_flags` the JVM's.

    Features among the settings are given to the tool that formats its storage. `host` is the
    address for clients, `version` the one of its jars.
    """

    kind = "kafka"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = JVM_FLAGS,
        host: str = HOST,
        version: str = YARDSTICK,
    ) -> None:
        super().__init__("kafka")
        self._version = version
        self._host = host
        self._settings = dict(settings or {})
        self._features = {
            name: self._settings.pop(name) for name in FEATURES if name in self._settings
        }
        self._jvm_flags = tuple(jvm_flags)
        self.data_dir = self.directory / "data"
        self._properties_path = self.directory / "server.properties"
        self._shared: ClassData | None = None
        if _SHARES in jvm_flags:  # a benchmark starts it as Kafka's own scripts do
            libs = Jars(_POM, "kafka", version).libs
            self._shared = ClassData.find(libs, _SERVER, self.directory)
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"{self._host}:{self.port}"

    def start(self) -> None:
        """Format the data directory and start; retry on another port if one was taken meanwhile."""
        for attempt in range(PORT_ATTEMPTS):
            self.port, controller_port = free_ports(2)
            self._write_properties(controller_port)
            if attempt == 0:
                self._format()
            try:
                self._launch()
            except StartFailed as failed:
                if "already in use" not in str(failed) or attempt == PORT_ATTEMPTS - 1:
                    raise
            else:
                return

    def restart(self) -> None:
        """Start again on the same port and data, after `stop` or `kill`."""
        self.end(signal.SIGTERM)
        with self._properties_path.open("a") as properties:  # the last value of a name holds
            properties.write(
                f"broker.session.timeout.ms={RESTARTED_SESSION_MS}\n"
                "transaction.abort.timed.out.transaction.cleanup.interval.ms="
                f"{RESTARTED_EXPIRY_MS}\n"
            )
        self._launch()

    def _write_properties(self, controller_port: int) -> None:
        properties = {
            **PROPERTIES,
            "listeners": f"PLAINTEXT://{self._host}:{self.port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self._host}:{self.port}",
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "log.dirs": str(self.data_dir),
            **self._settings,
        }
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        self._properties_path.write_text(lines)

    def _format(self) -> None:
        config = str(self._properties_path)
        features = [f"--feature={name}={level}" for name, level in self._features.items()]
        format_it = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
        java(*format_it, *features, version=self._version)

    def end(self, number: signal.Signals) -> None:
        super().end(number)
        if self._shared is not None and self._process is not None:
            self._shared.keep_draft(self._process.returncode)

    def _launch(self) -> None:
        path = class_path(self._version)
        shared = () if self._shared is None else self._shared.flags
        self.spawn(
            [
                *("java", *self._jvm_flags, *shared, "-cp", path),
                *(_SERVER, str(self._properties_path)),
            ]
        )
        self.wait_until_ready(lambda: answers(self.port, self._host))
