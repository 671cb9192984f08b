"""Take over from an application of Kafka Streams step by step: run it, stop it, import offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from streams.commands.root import cli
from tests.brokers import Broker
from tests.clients.programs import JVM_FLAGS, need, run
from tests.differential.peer import JARS
from tests.processes import HANG_LIMIT_S, wait_until

PARTITIONS = 3


def compile_java(name: str, into: Path) -> list[str]:
    """Compile an application with Kafka Streams of this directory, and return its command."""
    need("javac")
    path = JARS.class_path()
    source = str(Path(__file__).with_name(f"{name}.java"))
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), source])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", name]


@contextmanager
def create_topics(broker: Broker, application_id: str, topics: Sequence[str]) -> Iterator[None]:
    """Create topics, whose names the applications have, and delete all at the end."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
    for each in created.values():
        each.result(HANG_LIMIT_S)
    yield
    there = admin.list_topics(timeout=HANG_LIMIT_S).topics
    mine = [t for t in there if t in topics or t.startswith(f"{application_id}-")]
    for each in admin.delete_topics(mine).values():
        each.result(HANG_LIMIT_S)


class OffsetImport:
    """Runs `millrace import-offsets` for an application of this directory."""

    def __init__(self, module: str, broker: Broker, state_dir: Path, variable: str = "app") -> None:
        self._command = ["import-offsets", f"tests.porting.takeover.{module}:{variable}"]
        self._where = ["--bootstrap-servers", broker.bootstrap_servers]
        self._where += ["--state-dir", str(state_dir)]

    def run(self, *options: str) -> Any:
        """Run the command to its end, and return its result."""
        return CliRunner().invoke(cli, [*self._command, *options, *self._where])

    def take_offsets_over(self) -> str:
        """Import the offsets as soon as the group is empty, and return what the command printed.

        Kafka Streams does not leave its group when it is closed: its session has to end.
        """
        answer = self.run_when_group_is_empty()
        assert answer.exit_code == 0, answer.output
        return str(answer.output)

    def run_when_group_is_empty(self) -> Any:
        """Run the command as soon as the group is empty, and return its result."""
        answers = [self.run("--yes")]

        def is_decided() -> bool:
            if "has 1 member" in answers[-1].output:
                answers.append(self.run("--yes"))
            return "has 1 member" not in answers[-1].output

        wait_until(is_decided, what=lambda: answers[-1].output)
        return answers[-1]
