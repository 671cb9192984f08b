"""Run Kafka's tools in one JVM against one broker, a command after the other."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from tests.kafka.server import JVM_FLAGS, class_path

SOURCE = Path(__file__).with_name("Tools.java")
_PACKAGE = "org.apache.kafka.tools."
# The scripts of Kafka's `bin` directory, by the class that each runs.
TOOLS = {
    "kafka-acls": f"{_PACKAGE}AclCommand",
    "kafka-broker-api-versions": f"{_PACKAGE}BrokerApiVersionsCommand",
    "kafka-cluster": f"{_PACKAGE}ClusterTool",
    "kafka-configs": f"{_PACKAGE}ConfigCommand",
    "kafka-consumer-groups": f"{_PACKAGE}consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": f"{_PACKAGE}DeleteRecordsCommand",
    "kafka-features": f"{_PACKAGE}FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}GroupsCommand",
    "kafka-leader-election": f"{_PACKAGE}LeaderElectionCommand",
    "kafka-log-dirs": f"{_PACKAGE}LogDirsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}MetadataQuorumCommand",
    "kafka-reassign-partitions": f"{_PACKAGE}reassign.ReassignPartitionsCommand",
    "kafka-streams-groups": f"{_PACKAGE}streams.StreamsGroupCommand",
    "kafka-topics": f"{_PACKAGE}TopicCommand",
}


class Printed(NamedTuple):
    """Holds a tool's exit status and all that it printed."""

    status: int
    text: str


class Shell:
    """Runs commands as a person types them; `{}` stands for the broker's address."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._process = subprocess.Popen(
            [
                "java",
                *(flag for flag in JVM_FLAGS if "defaultLogLevel" not in flag),
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
                "-cp",
                class_path(),
                str(SOURCE),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, command: str) -> Printed:
        """Run one tool to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        script, *arguments = command.format(self.bootstrap_servers).split()
        line = "\t".join([TOOLS[script], *arguments])
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        head = self._process.stdout.readline().split()
        assert head, f"the JVM ended with {self._process.wait()} in {command}"
        status, size = map(int, head)
        return Printed(status, self._process.stdout.read(size).decode())


# What no two brokers have in common, and what Kafka sets for all brokers of a new cluster.
_OWN = (
    (re.compile(r"\n\tat .*"), ""),
    (re.compile(r"127\.0\.0\.1[: ]\d+"), "ADDRESS"),
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"[-\w]+-[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\w+/]{22}(?= +/127)"), "MEMBER"),
    (re.compile(r'"/[^"]+/data"'), '"DIRECTORY"'),
    (re.compile(r"Cluster ID: \S+"), "Cluster ID: ID"),
    (re.compile(r"min\.insync\.replicas=1,?(?=\S*$)", re.MULTILINE), ""),
    (re.compile(r"^  min\.insync\.replicas=.*\n", re.MULTILINE), ""),
)


def normal(text: str) -> str:
    """Return what a tool printed, without what no two brokers have in common."""
    for pattern, instead in _OWN:
        text = pattern.sub(instead, text)
    return text


@dataclass(frozen=True, slots=True)
class Pair:
    """Runs the same command for two brokers."""

    ours: Shell
    kafkas: Shell

    def run(self, command: str) -> tuple[Printed, Printed]:
        ours, kafkas = (
            Printed(printed.status, normal(printed.text))
            for printed in (self.ours.run(command), self.kafkas.run(command))
        )
        return ours, kafkas
