"""An application and the commands on each way into a secured Kafka: killed under load, and refused.

The clients of the tests themselves use the plaintext listener of the same broker, so that what
they read back doesn't depend on what is tested.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.cluster import PARTITIONS, Command, Topics, stored_counts
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S

WAYS = (
    *("TLS_1_2", "TLS_1_3", "MTLS", "SASL_SSL/PLAIN", "SASL_SSL/SCRAM-SHA-256"),
    *("SASL_SSL/SCRAM-SHA-512", "SASL_SSL/OAUTHBEARER", "SASL_PLAINTEXT/SCRAM-SHA-256"),
)
PROGRAM = """
from tests.integration.worker import build
app = build("{name}", "{source}", "{target}", kind="count", commit_interval_ms=50)
"""
NAMED_SETTINGS = {
    "untrusted authority": "ssl.ca.location",
    "untrusted certificate": "ssl.certificate.location",
    "expired certificate": "ssl.certificate.location",
    "no certificate": "ssl.certificate.location",
    "wrong password": "sasl.password",
    "unknown user": "sasl.username",
    "wrong secret": "sasl.oauthbearer.client.secret",
    "token for another audience": "sasl.oauthbearer.*",
}
"""The setting that the message names, by what is wrong."""
REFUSED_SECONDS_MAX = 10
"""How much longer than a command that works one may take to be refused."""
PART = 200
"""How many records are waited for at a time."""
MADE_PARTITIONS = 2
COMMANDS = ("run", "create-topics", "plan", "group describe")
LOADED_RECORDS, LOAD_INTERVAL_S = 10, 0.05


class Place:
    """Runs commands on one way into the cluster, with a connection file of that way."""

    def __init__(self, topics: Topics, directory: Path) -> None:
        self._topics = topics
        self._directory = directory
        self._commands: list[Command] = []
        self.state = directory / "state"
        self.plan = directory / "plan.json"
        program = PROGRAM.format(
            name=topics.application, source=topics.source, target=topics.target
        )
        (directory / "program.py").write_text(program)

    def start(self, command: str, settings: Mapping[str, str]) -> Command:
        """Start one of `COMMANDS` with these settings of librdkafka's."""
        number = len(self._commands)
        connection = dict(settings)
        servers = connection.pop("bootstrap.servers")
        file = self._directory / f"connection-{number}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in connection.items()))
        arguments = {
            "run": ["program:app", "--state-dir", str(self.state)],
            "create-topics": [
                f"{self._topics.application}-made",
                "--partitions",
                str(MADE_PARTITIONS),
            ],
            "plan": ["program:app", "--save", str(self.plan)],
            "group describe": [self._topics.application],
        }[command]
        started = Command(
            [
                *("-m", "streams", *command.split(), *arguments),
                *("--bootstrap-servers", servers, "--connection", str(file)),
            ],
            self._directory,
        )
        self._commands.append(started)
        return started

    def close(self) -> None:
        for command in self._commands:
            command.kill()
            command.close()


@pytest.fixture
def topics(secured_kafka: SecuredKafka, unique: Callable[[str], str]) -> Topics:
    return Topics(secured_kafka.listener_servers("PLAINTEXT"), unique("secured"))


@pytest.fixture
def place(topics: Topics, tmp_path: Path) -> Iterator[Place]:
    place = Place(topics, tmp_path)
    yield place
    place.close()


@contextmanager
def keep_loading(topics: Topics) -> Iterator[None]:
    """Load records a few at a time, so that the output stays short, while the block runs."""
    ended = threading.Event()

    def load() -> None:
        while not ended.wait(LOAD_INTERVAL_S):
            topics.load(LOADED_RECORDS)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_an_application_counts_exactly_once_when_it_is_killed_under_load(
    way: str, secured_kafka: SecuredKafka, topics: Topics, place: Place
) -> None:
    settings = describe_access(secured_kafka, way).settings
    topics.load(PART)
    worker = place.start("run", settings)
    topics.wait_for_counts(PART)
    described = place.start("group describe", settings)
    assert described.wait_for_end() == 0, described.log_tail()
    assert f"group {topics.application}: " in described.log_tail()
    with keep_loading(topics):
        counted = topics.wait_for_counts(PART + 1).total()
        worker.kill()
        worker = place.start("run", settings)
        topics.wait_for_counts(counted + PART)
    topics.wait_for_counts(topics.loaded)
    worker.stop()
    assert worker.status == 0, worker.log_tail()
    assert topics.counts() == topics.truth
    assert stored_counts(place.state, topics.application) == topics.truth


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_commands_work_and_wrong_credentials_are_refused_in_one_line(
    way: str, secured_kafka: SecuredKafka, topics: Topics, place: Place
) -> None:
    access = describe_access(secured_kafka, way)
    began_s = time.monotonic()
    made, planned = (place.start(each, access.settings) for each in ("create-topics", "plan"))
    assert made.wait_for_end() == 0, made.log_tail()
    assert planned.wait_for_end() == 0, planned.log_tail()
    accepted_s = time.monotonic() - began_s
    name = f"{topics.application}-made"
    found = AdminClient({"bootstrap.servers": topics.servers}).list_topics(name, HANG_LIMIT_S)
    assert len(found.topics[name].partitions) == MADE_PARTITIONS
    assert json.loads(place.plan.read_text())["partitions"] == {topics.source: PARTITIONS}
    for what, refusal in access.refusals.items():
        began_s = time.monotonic()
        commands = [place.start(each, refusal.settings) for each in COMMANDS]
        for command in commands:
            assert command.wait_for_end() == 2, command.log_tail()
            (line,) = command.log_tail().splitlines()
            assert line.startswith("millrace: ")
            assert NAMED_SETTINGS[what] in line
        refused_s = time.monotonic() - began_s
        assert refused_s < len(commands) * accepted_s + REFUSED_SECONDS_MAX, what
