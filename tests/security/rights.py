"""Give a user of its own to an application, with the rights that `millrace acls` prints for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AclBinding, AclOperation, ResourcePatternType, ResourceType

from tests.integration.cluster import Command, Topics
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until

REPOSITORY = Path(__file__).parents[2]
PROGRAM = f"""
from streams import App, serdes
app = App("{{name}}", commit_interval_ms=50, heartbeat_interval_ms=200,
    repartition_purge_interval_ms=100, task_timeout_ms={UNREACHED_MS},
    processing_guarantee="{{guarantee}}", ledger={{ledger}},
    deserialization_handler="dead_letter:{{name}}-dead")
names = app.global_table("{{name}}-names", key=serdes.string, value=serdes.string)
lines = app.stream("{{name}}-in", key=serdes.string, value=serdes.string)
moved = lines.map(lambda key, value: (key, value), key=serdes.string, value=serdes.string)
moved.group_by_key().count(store="counts").to_stream().to("{{name}}-out")
"""
_UNREADABLE = b"\xff"
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {
    "literal": ResourcePatternType.LITERAL,
    "prefixed": ResourcePatternType.PREFIXED,
}


class Right(NamedTuple):
    """Represents one printed ACL."""

    resource: str
    name: str
    operation: str


class LimitedApplication:
    """Runs an application with a repartition topic, a store and all else as a user with few rights.

    `topics` are the super user's way to its topics.
    """

    def __init__(
        self,
        kafka: SecuredKafka,
        administration: Administration,
        directory: Path,
        name: str,
        guarantee: str,
    ) -> None:
        self.user = f"user-of-{name}"
        self.administration = administration
        self.topics = Topics(kafka.bootstrap_servers, name)
        self.topics.create(f"{name}-dead", f"{name}-names")
        self.is_at_least_once = guarantee == "at_least_once"
        self.state_dir = directory / "state"
        self.directory = directory
        program = PROGRAM.format(name=name, guarantee=guarantee, ledger=not self.is_at_least_once)
        (directory / "program.py").write_text(program)
        settings = create_user(kafka, administration, self.user)
        self.servers = settings.pop("bootstrap.servers")
        (directory / "connection.json").write_text(json.dumps(settings))
        self.acls = self.list_acls(self.user)

    def list_acls(self, user: str, *options: str) -> dict[Right, AclBinding]:
        """Return the ACLs that `millrace acls --json` prints for a user."""
        printed = self.print_acls("--json", "--principal", f"User:{user}", *options)
        return {
            Right(each["resource_type"], each["name"], each["operation"]): _to_binding(user, each)
            for each in json.loads(printed)["acls"]
        }

    def print_acls(self, *options: str) -> str:
        """Return what `millrace acls` prints for the application."""
        return subprocess.run(
            [
                *(sys.executable, "-m", "streams", "acls", "program:app"),
                *("--principal", f"User:{self.user}", *options),  # the last one of a name holds
            ],
            cwd=self.directory,
            env={"PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_LIMIT_S,
        ).stdout

    def plan(self) -> tuple[int, str]:
        """Return status and output of `millrace plan` as its user."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "streams", "plan", "program:app"),
                *("--bootstrap-servers", self.servers),
                *("--connection", str(self.directory / "connection.json")),
            ],
            cwd=self.directory,
            env={"PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
        )
        return done.returncode, done.stdout

    def load(self, records: int) -> None:
        """Write good records, one that can't be read, and a row of the global table."""
        self.topics.load(records)
        producer = Producer({"bootstrap.servers": self.topics.servers, "linger.ms": 0})
        producer.produce(self.topics.source, _UNREADABLE, b"key")
        producer.produce(f"{self.topics.application}-names", b"row", b"key")
        assert producer.flush(HANG_LIMIT_S) == 0

    def start(self) -> Command:
        """Start a worker as its user."""
        return Command(
            [
                *("-m", "streams", "run", "program:app", "--bootstrap-servers", self.servers),
                *("--connection", str(self.directory / "connection.json")),
                *("--state-dir", str(self.state_dir)),
            ],
            self.directory,
        )

    def load_until_ended(self, worker: Command) -> list[str]:
        """Load records until the worker has ended by itself; return its log's lines."""

        def ended() -> bool:
            self.load(10)
            return worker.status is not None

        wait_until(ended, what=worker.log_tail)
        return worker.log_since(0).splitlines()

    def wait_for_counts(self, worker: Command, total: int) -> None:
        """Wait until the counts sum up to `total` at least, as long as the worker lives."""
        wait_until(
            lambda: worker.status is not None or self.topics.counts().total() >= total,
            what=worker.log_tail,
        )
        assert worker.status is None, worker.log_tail()

    def count_to_the_end(self) -> None:
        """Run until all records are counted, and end the worker in order.

        Each record is counted once, unless it is at least once.
        """
        self.load(1)  # so that it is this worker that comes to the end
        worker = self.start()
        try:
            self.wait_for_counts(worker, self.topics.loaded)
            counts, truth = self.topics.counts(), self.topics.truth
            assert counts >= truth if self.is_at_least_once else counts == truth
            worker.stop()
            assert worker.status == 0, worker.log_tail()
        finally:
            worker.close()


def create_user(kafka: SecuredKafka, administration: Administration, user: str) -> dict[str, str]:
    """Create a user without rights; return the settings with which librdkafka's clients log in."""
    administration.set_scram_password(user, "secret")
    access = describe_access(kafka, "SASL_PLAINTEXT/SCRAM-SHA-256", user, "secret")
    return dict(access.settings)


def _to_binding(user: str, printed: dict[str, Any]) -> AclBinding:
    return create_allow_acl(
        user,
        _OPERATIONS[printed["operation"]],
        _RESOURCES[printed["resource_type"]],
        printed["name"],
        _PATTERNS[printed["pattern_type"]],
    )


def find_messages(lines: list[str]) -> Iterator[str]:
    """Yield what a worker told its user at its end."""
    yield from (line.removeprefix("millrace: ") for line in lines if line.startswith("millrace: "))
