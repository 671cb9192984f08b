"""Test rotations and refusals of worker processes, and during the first copy of a global table."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.cluster import Command
from tests.kafka.secured.access import is_certificate_error, try_access
from tests.kafka.secured.certificates import Authority
from tests.kafka.secured.server import ADMIN, SecuredKafka
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records
from tests.security.certificate_files import CertificateFiles
from tests.security.counting import KEYS, PARTITIONS, CountingApplication

pytestmark = pytest.mark.sampled(1, by="test")

WORKERS = 2
GROUPS_TOPIC, GROUPS_PARTITIONS = "__consumer_offsets", 50
GROUP_METADATA_KEY = 2
"""The version of the key of a group's metadata, of Kafka's GroupMetadataKey."""
TAKEN_UP = "connection: ssl.certificate.location, ssl.key.location: changed"


class Looking:
    """Runs the application of `looking_up` by the command, and changes its certificate."""

    def __init__(self, kafka: SecuredKafka, counting: CountingApplication, directory: Path) -> None:
        self.counting = counting
        self._directory = directory
        self._kafka = kafka
        self._servers = kafka.listener_servers("PLAINTEXT")
        self._names, self._found = f"{counting.name}-names", f"{counting.name}-found"
        admin = AdminClient({"bootstrap.servers": self._servers})
        new = [NewTopic(topic, PARTITIONS, 1) for topic in (self._names, self._found)]
        for answer in admin.create_topics(new).values():
            answer.result(HANG_LIMIT_S)
        self.files = CertificateFiles(directory, kafka.authority.issue_client(ADMIN))
        self._command: Command | None = None

    def set_names(self, name: str) -> None:
        """Write the row of each key that `CountingApplication` loads."""
        producer = Producer({"bootstrap.servers": self._servers})
        for number in range(KEYS):
            producer.produce(self._names, name, f"key {number}")
        assert producer.flush(HANG_LIMIT_S) == 0

    def start(self, workers: int = 1) -> Command:
        """Start the command."""
        access = self.files.describe(self._kafka)
        servers = access.pop("bootstrap.servers")
        (self._directory / "connection").write_text(
            "".join(f"{name}={value}\n" for name, value in access.items())
        )
        (self._directory / "looking.py").write_text(
            "from pathlib import Path\n"
            "from tests.security.looking_up import build_app\n"
            f"app = build_app({self.counting.name!r}, Path({str(self._directory)!r}))\n"
        )
        options = ["--workers", str(workers), "--bootstrap-servers", servers]
        options += ["--connection", str(self._directory / "connection")]
        self._command = Command(["-m", "streams", "run", "looking:app", *options], self._directory)
        return self._command

    def open_gate(self) -> None:
        """Let the workers copy the table."""
        (self._directory / "open").touch()

    def wait_until_reading(self) -> None:
        """Wait until a worker has begun to copy the table."""
        wait_until((self._directory / "reading").exists, what=self.log)

    def wait_for_lines(self, text: str, count: int) -> None:
        """Wait until so many lines of the log have the text."""
        wait_until(lambda: self.log().count(text) == count, what=self.log)

    def wait_until_found(self, name: str, processes: int) -> None:
        """Load records until so many processes have found this name in the table."""
        found: set[str] = set()

        def is_found() -> bool:
            self.counting.load(KEYS)
            values = (
                each.value().decode() for each in records(self._servers, self._found, PARTITIONS)
            )
            found.update(value for value in values if value.startswith(f"{name} by "))
            return len(found) == processes

        wait_until(is_found, what=lambda: f"{name} is found only: {found}")

    def read_generations(self) -> list[int]:
        """Return the generations of the group that its coordinator has recorded, in order."""
        generations = []
        metadata_key = struct.pack(">hh", GROUP_METADATA_KEY, len(self.counting.name))
        metadata_key += self.counting.name.encode()
        for each in records(self._servers, GROUPS_TOPIC, GROUPS_PARTITIONS):
            if each.key() == metadata_key and each.value() is not None:
                (protocol_type_bytes,) = struct.unpack_from(">h", each.value(), 2)
                (generation,) = struct.unpack_from(">i", each.value(), 4 + protocol_type_bytes)
                generations.append(generation)
        return generations

    def log(self) -> str:
        """Return what the command has printed so far."""
        assert self._command is not None
        return self._command.log_path.read_text()

    def close(self) -> None:
        if self._command is not None:
            self._command.kill()
            self._command.close()


@pytest.fixture
def looking(
    secured_kafka: SecuredKafka, application: CountingApplication, tmp_path: Path
) -> Iterator[Looking]:
    looking = Looking(secured_kafka, application, tmp_path)
    yield looking
    looking.close()


@pytest.fixture
def revoke_old(
    secured_kafka: SecuredKafka,
    restart_kafka: Callable[[], None],
    trusted_by_mtls: Callable[[list[Authority]], None],
) -> Callable[[], None]:
    """Let the broker trust both authorities, and provide what ends all that the first has issued.

    Connections that are open would stay open: the broker is restarted.
    """
    old, new = secured_kafka.authority, secured_kafka.untrusted_authority
    trusted_by_mtls([old, new])

    def revoke() -> None:
        trusted_by_mtls([new])
        restart_kafka()

    return revoke


def test_worker_processes_go_on_with_a_new_certificate_in_the_same_generation(
    secured_kafka: SecuredKafka, looking: Looking, revoke_old: Callable[[], None], tmp_path: Path
) -> None:
    counting = looking.counting
    looking.set_names("first")
    looking.open_gate()
    command = looking.start(WORKERS)
    looking.wait_until_found("first", WORKERS)
    counting.wait_until_counted()
    generations = looking.read_generations()
    assert generations
    looking.files.write(secured_kafka.untrusted_authority.issue_client(ADMIN))
    counting.load(100)
    looking.wait_for_lines("thread 0 goes on with new connections", WORKERS)
    looking.wait_for_lines("global tables go on with new connections", WORKERS)
    counting.load(100)
    counting.wait_until_counted()
    revoke_old()
    (tmp_path / "old").mkdir()
    old = CertificateFiles(tmp_path / "old", secured_kafka.authority.issue_client(ADMIN))
    refused = try_access(old.describe(secured_kafka))
    assert refused is not None
    assert is_certificate_error(refused)
    looking.set_names("second")
    looking.wait_until_found("second", WORKERS)
    counting.check_exact()
    assert looking.read_generations() == generations
    assert "starts over from what is committed" not in looking.log()
    command.stop()
    assert command.status == 0, looking.log()


def test_a_certificate_is_taken_up_during_the_first_copy_of_a_global_table(
    secured_kafka: SecuredKafka, looking: Looking, revoke_old: Callable[[], None]
) -> None:
    looking.set_names("first")
    command = looking.start()
    looking.wait_until_reading()
    looking.files.write(secured_kafka.untrusted_authority.issue_client(ADMIN))
    looking.wait_for_lines(TAKEN_UP, 1)
    revoke_old()
    looking.set_names("second")
    looking.open_gate()
    looking.counting.load(100)
    looking.counting.check_exact()
    command.stop()
    assert command.status == 0, looking.log()


def test_a_refusal_during_the_first_copy_of_a_global_table_ends_the_command_with_one_line(
    looking: Looking, revoke_old: Callable[[], None]
) -> None:
    looking.set_names("first")
    command = looking.start()
    looking.wait_until_reading()
    revoke_old()
    looking.set_names("second")
    looking.open_gate()
    assert command.wait_for_end() == 2, looking.log()
    [line] = [line for line in looking.log().splitlines() if line.startswith("millrace: ")]
    assert "refused the client certificate" in line
    assert "ssl.certificate.location" in line
    assert "Traceback" not in looking.log()
