"""Nothing that an application shows, writes or sends has a secret of its connection in it.

The application runs with all its log lines, librdkafka's of `debug` included. It is killed, started
again, stopped, ended by a record that its function fails on, with a traceback, and refused for a
wrong secret.
"""

from __future__ import annotations

import base64
import json
import os
import re
import traceback
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any
from urllib.parse import quote_plus

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from streams import App
from streams.errors import UserError
from streams.processes.cluster import find_or_start_cluster
from tests.integration.cluster import Command, Topics
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.oidc import Client
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, HOST, wait_until
from tests.security.markers import (
    begin_token,
    encrypt_key,
    find_secrets,
    list_forms,
    list_key_forms,
)

SECRET, WRONG_SECRET = "openSesame/One-ä", "openSesame/Two-ö"
WAYS = {
    "SASL_SSL/SCRAM-SHA-512": "sasl.password",
    "SASL_SSL/OAUTHBEARER": "sasl.oauthbearer.client.secret",
    "MTLS": "ssl.key.password",
}
"""The setting with the secret, by the way into the cluster."""
PROGRAM = """
import logging

from streams import App, serdes

logging.getLogger().setLevel(logging.DEBUG)  # librdkafka's lines of `debug` are of that level
DEBUG = {{"debug": "security,broker,protocol"}}


def check(value: str) -> str:
    if value == "value of !":
        raise ValueError(f"the {{value}} is poison")
    return value


def respond(error: Exception) -> str:
    raise RuntimeError("no response") from error


app = App(
    "{name}",
    ledger=True,
    commit_interval_ms=100,
    heartbeat_interval_ms=500,
    consumer=DEBUG,
    producer=DEBUG,
    uncaught_exception_handler=respond,
)
source = app.stream("{name}-in", key=serdes.string, value=serdes.string)
checked = source.map_values(check, value=serdes.string)
checked.group_by_key().count(store="counts").to_stream().to("{name}-out")
"""
EXPECTED = {
    "command lines": ("program:app",),
    "health": ("threads",),
    "live": ("threads",),
    "metrics": ("millrace_",),
    "outputs": ("Traceback", "is poison", "SIGKILL", "DEBUG streams.runtime.clients.librdkafka"),
    "objects": ("***", "Traceback"),
}
"""What has to be in a place, so that nothing was missed there."""
OWN_PLACES = (
    *("state", "plan", "outputs", "topic -in", "topic -out", "topic -counts-changelog"),
    *("topic -ledger", "topic __consumer_offsets", "topic __transaction_state"),
)
"""The places with the name of the application in them."""
SHARED_TOPICS = ("__consumer_offsets", "__transaction_state")
PART = 60


@dataclass(frozen=True, slots=True)
class Connection:
    """Holds the settings of a connection, how commands get them, and the forms of its secrets."""

    servers: str
    settings: Mapping[str, str]
    way: str
    forms: Mapping[str, Collection[bytes]]

    def with_secret(self, secret: str) -> Connection:
        """Return a connection with another secret."""
        settings = {**self.settings, WAYS[self.way]: secret}
        return Connection(self.servers, settings, self.way, self.forms)

    def write(self, directory: Path) -> tuple[list[str], dict[str, str]]:
        """Return arguments and environment of a command, after the files for it are written."""
        arguments = ["--bootstrap-servers", self.servers]
        if self.way.endswith("OAUTHBEARER"):
            return arguments, {"MILLRACE_CONNECTION": json.dumps(dict(self.settings))}
        if self.way == "MTLS":
            lines = (f"{name!r} = {json.dumps(value)}\n" for name, value in self.settings.items())
            option, text = "config", "[connection]\n" + "".join(lines)
        else:
            lines = (f"{name}={value}\n" for name, value in self.settings.items())
            option, text = "connection", "".join(lines)
        directory.mkdir()
        file = directory / f"{option}{'.toml' if option == 'config' else ''}"
        file.write_text(text)
        return [*arguments, f"--{option}", str(file)], {}


def plant_secrets(
    kafka: SecuredKafka, administration: Administration, user: str, way: str
) -> Connection:
    """Create a user with rights to what begins with its name, and return its connection."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    administration.add_acls(
        *(
            create_allow_acl(user, AclOperation.ALL, kind, user, ResourcePatternType.PREFIXED)
            for kind in kinds
        )
    )
    forms = {"secret": list_forms(SECRET), "wrong secret": list_forms(WRONG_SECRET)}
    if way == "MTLS":
        settings = dict(describe_access(kafka, way, user).settings)
        plain = Path(settings.pop("ssl.key.location")).read_bytes()
        certificate = Path(settings.pop("ssl.certificate.location")).read_text()
        pem = encrypt_key(plain, SECRET)
        settings |= {
            "ssl.certificate.pem": certificate,
            "ssl.key.pem": pem,
            "ssl.key.password": SECRET,
        }
        forms["key"] = list_key_forms(plain, pem)
    else:
        settings = dict(describe_access(kafka, way, user, SECRET).settings)
    if way.endswith("OAUTHBEARER"):
        kafka.oidc.clients[user] = Client(SECRET)
        forms["token"] = list_forms(begin_token(kafka.oidc.sign_token(user)))
    elif way != "MTLS":
        administration.set_scram_password(user, SECRET)
    return Connection(settings.pop("bootstrap.servers"), settings, way, forms)


class Place:
    """Runs commands with a connection in a directory, and keeps all that they show or leave."""

    def __init__(self, topics: Topics, directory: Path) -> None:
        self.topics = topics
        self.shown: dict[str, bytes] = {}
        self._directory = directory
        self._commands: list[Command] = []
        (directory / "program.py").write_text(PROGRAM.format(name=topics.application))
        (directory / "temporary").mkdir()

    def start(self, command: str, connection: Connection) -> Command:
        """Start `run` or `plan` of the application."""
        number = len(self._commands)
        more = {
            "run": [
                *("--verbose", "--workers", "2", "--health-port", "0"),
                *("--state-dir", str(self._directory / "state")),
            ],
            "plan": ["--save", str(self._directory / "plan.json")],
        }[command]
        arguments, environment = connection.write(self._directory / f"connection-{number}")
        environment["TMPDIR"] = str(self._directory / "temporary")
        started = Command(
            ["-m", "streams", command, "program:app", *more, *arguments],
            self._directory,
            **environment,
        )
        self._commands.append(started)
        return started

    def watch(self, command: Command) -> None:
        """Keep what the processes of a command that runs show."""
        log = command.log_path.read_text()
        workers = list_children(command.pid)
        assert len(workers) == 2, log
        for pid in (command.pid, *workers):
            self.add("command lines", Path(f"/proc/{pid}/cmdline").read_bytes())
        for port in re.findall(r"health_port: listening on 127\.0\.0\.1:(\d+)", log):
            for path in ("health", "live", "metrics"):
                self.add(path, fetch(f"http://{HOST}:{port}/{path}"))

    def read_files(self) -> None:
        """Keep what is in files now: state, temporary files."""
        for place in ("state", "temporary"):
            for path in sorted((self._directory / place).rglob("*")):
                if path.is_file():
                    self.add(place, f"{path}\n".encode() + path.read_bytes())

    def read_topics(self, data_dir: Path) -> None:
        """Keep what a broker holds of the application's topics, and of those of all groups."""
        for path in sorted(data_dir.glob("*/*.log")):
            topic = path.parent.name.rpartition("-")[0]
            if topic.startswith(self.topics.application) or topic in SHARED_TOPICS:
                name = topic.removeprefix(self.topics.application)
                self.add(f"topic {name}", f"{path.parent.name}\n".encode() + path.read_bytes())

    def read_outputs(self) -> None:
        """Keep what ended commands have printed and written."""
        for command in self._commands:
            assert command.status is not None
            self.add("outputs", command.log_path.read_bytes())
        self.add("plan", (self._directory / "plan.json").read_bytes())

    def add(self, place: str, data: bytes) -> None:
        self.shown[place] = self.shown.get(place, b"") + data + b"\n"

    def close(self) -> None:
        for command in self._commands:
            command.stop()
            command.close()


def list_children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=HANG_LIMIT_S) as answer:
        data: bytes = answer.read()
    return data


def describe_app(connection: Connection) -> Iterator[str]:
    """Yield what an App, its settings, its cluster or the error of a refusal tell of themselves."""
    app = App("app", bootstrap_servers=connection.servers, connection=dict(connection.settings))
    told: list[Any] = [app, vars(app), app.config, vars(app.config), app.config.model_dump()]
    try:
        cluster = find_or_start_cluster(app.config)
    except UserError as error:
        yield "".join(traceback.format_exception(error))
        told += [error, error.args, vars(error), error.__cause__, error.__context__]
    else:
        told += [cluster, vars(cluster.security), cluster.security.value.settings]
    for each in told:
        yield f"{each!r}\n{each}"


@pytest.fixture
def place(
    secured_kafka: SecuredKafka, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[Place]:
    topics = Topics(secured_kafka.listener_servers("PLAINTEXT"), unique("marked"))
    place = Place(topics, tmp_path)
    yield place
    place.close()


def run_all(place: Place, connection: Connection) -> None:
    """Run the application to each of its ends, watched."""
    topics = place.topics
    wrong = connection.with_secret(WRONG_SECRET)
    topics.load(PART)
    worker = place.start("run", connection)
    topics.wait_for_counts(PART)
    place.watch(worker)
    killed = list_children(worker.pid)[0]
    os.kill(killed, SIGKILL)
    place.read_files()
    wait_until(lambda: killed not in list_children(worker.pid), what="a worker lives")
    topics.load(PART)
    topics.wait_for_counts(topics.loaded)
    worker.stop()
    assert worker.status == 0, worker.log_tail()
    planned, *refused = (
        place.start("plan", connection),
        place.start("plan", wrong),
        place.start("run", wrong),
    )
    assert planned.wait_for_end() == 0, planned.log_tail()
    assert [each.wait_for_end() for each in refused] == [2, 2]
    worker = place.start("run", connection)
    topics.load_keys("in", "!")
    assert worker.wait_for_end() == 2, worker.log_tail()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_secrets_are_in_nothing_that_an_application_shows_or_leaves(
    way: str, secured_kafka: SecuredKafka, administration: Administration, place: Place
) -> None:
    connection = plant_secrets(secured_kafka, administration, place.topics.application, way)
    run_all(place, connection)
    place.read_files()
    place.read_topics(secured_kafka.data_dir)
    place.read_outputs()
    for each in (connection, connection.with_secret(WRONG_SECRET)):
        place.add("objects", "\n".join(describe_app(each)).encode())
    for name in OWN_PLACES:
        assert place.topics.application.encode() in place.shown[name], name
    for name, texts in EXPECTED.items():
        for text in texts:
            assert text.encode() in place.shown[name], f"no {text!r} in {name}"
    found = {name: find_secrets(connection.forms, data) for name, data in place.shown.items()}
    assert {name: secrets for name, secrets in found.items() if secrets} == {}


@pytest.mark.parametrize("before", ["", "a", "user:", "\0user\0"])
@pytest.mark.parametrize("after", ["", "b", "cd"])
def test_a_secret_is_found_in_whatever_is_made_of_it(before: str, after: str) -> None:
    forms = {"secret": list_forms(SECRET), "wrong secret": list_forms(WRONG_SECRET)}
    text = before + SECRET + after
    shown = (text.encode(), repr(text.encode()).encode(), base64.b64encode(text.encode()))
    for data in (*shown, quote_plus(text).encode(), json.dumps(text).encode()):
        assert find_secrets(forms, b"x" + data + b"y") == ["secret"]
