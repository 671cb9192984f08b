"""Test Kafka's own smoke test of Kafka Streams with both protocols, while instances die.

Kafka's driver (SmokeTestDriver) writes the input and verifies each of the application's twelve
outputs: windows, suppressed results, joins of tables, counts and averages. The application is
Kafka's own on the embedded broker, and ours (`application.py`) on that and on real Kafka. Kafka
publishes these classes for 4.3, not for 4.4.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.clients.programs import JVM_FLAGS, Program, need, run
from tests.clients.test_kafka_streams import configure_group
from tests.conformance.calls import LATEST, create_topic, list_offset, listed_groups
from tests.conformance.wire import Client
from tests.crashes.bugs import offsets_are_one_record_behind
from tests.kafka.jars import Jars
from tests.kafka.server import RealKafka
from tests.processes import wait_until
from tests.smoke.application import APPLICATION, PROTOCOLS, SESSION_MS

HERE = Path(__file__).parent
JARS = Jars(HERE / "pom.xml", "smoke", "4.3.0")
PARTITIONS = 5
KEYS, RECORDS_PER_KEY, SECONDS = 10, 400, 30
TOPICS = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum"),
    *("sws-raw", "sws-suppressed", "cnt", "avg", "tagg"),
)
Command = Callable[[str, Path, str], tuple[str, ...]]
"""Takes the broker, the state directory and the protocol of an instance."""
TIMEOUT_S = 900.0  # JVMs start beside others, and the driver waits for results for minutes


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that runs Kafka's driver."""
    need("javac")
    into, path = tmp_path_factory.mktemp("smoke"), JARS.class_path()
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), str(HERE / "Smoke.java")])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", "Smoke"]


@pytest.fixture
def own_broker(kind: str) -> Iterator[Broker]:
    """Provide a broker of its own, since the names of topics and group are given."""
    made = EmbeddedProcess(SETTINGS) if kind == "embedded" else RealKafka(SETTINGS)
    try:
        made.start()
        yield made
    finally:
        made.close()


def count_echoed(client: Client) -> int:
    """Return how many offsets the topic has to which all input is copied."""
    found = [list_offset(client, "echo", LATEST, partition=each) for each in range(PARTITIONS)]
    return sum(each.offset for each in found)


def command_kafka_streams(servers: str, state: Path, protocol: str) -> tuple[str, ...]:
    """Return the command of an instance of Kafka's application."""
    properties = {
        "bootstrap.servers": servers,
        "processing.guarantee": "exactly_once_v2",
        "group.protocol": protocol,
        "state.dir": str(state),
        **({"session.timeout.ms": str(SESSION_MS)} if protocol == "classic" else {}),
    }
    path = state.with_suffix(".properties")
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    main = "org.apache.kafka.streams.tests.StreamsSmokeTest"
    return "java", *JVM_FLAGS, "-cp", JARS.class_path(), main, str(path), "process"


def command_millrace(servers: str, state: Path, protocol: str) -> tuple[str, ...]:
    """Return the command of an instance of ours."""
    return sys.executable, "-m", "tests.smoke.application", servers, str(state), protocol


def command_planted(servers: str, state: Path, protocol: str) -> tuple[str, ...]:
    """Return the command of an instance of ours whose tasks process a record again."""
    program, bug = "tests.smoke.planted_application", offsets_are_one_record_behind.__name__
    return sys.executable, "-m", program, bug, servers, str(state), protocol


def drive_while_instances_are_killed(
    broker: Broker,
    driver: list[str],
    start_command: Callable[[Path], tuple[str, ...]],
    path: Path,
    verdict: str = "verified",
) -> str:
    """Have the driver write and verify while instances and the broker are killed.

    Return what the driver has said, which has to end in the `verdict`. `start_command(state)` is
    the command of an instance.
    """
    servers = broker.bootstrap_servers
    programs: list[Program] = []
    written = KEYS * RECORDS_PER_KEY

    def start(name: str, *arguments: str) -> Program:
        programs.append(Program(name, arguments))
        return programs[-1]

    def start_instance() -> Program:
        name = f"instance-{len(programs)}"
        return start(name, *start_command(path / name))

    def tell_logs() -> str:
        return "\n".join(f"{each.name}:\n{each.log_tail()}" for each in programs)

    def await_echo(count: int) -> None:
        with Client(servers) as client:
            wait_until(
                lambda: count_echoed(client) >= count,
                timeout_s=TIMEOUT_S,
                what=lambda: f"{count_echoed(client)} of {count} are echoed\n{tell_logs()}",
            )

    with Client(servers) as client:
        configure_group(client, APPLICATION)
        for topic in TOPICS:
            create_topic(client, topic, PARTITIONS)
    try:
        drive = start("driver", *driver, servers, *map(str, (KEYS, RECORDS_PER_KEY, SECONDS)))
        first, second = start_instance(), start_instance()
        await_echo(written // 8)
        first.kill()
        third = start_instance()
        await_echo(written // 3)
        second.kill()
        start_instance()
        broker.kill()
        broker.restart()
        await_echo(written // 2)
        third.kill()
        start_instance()
        wait_until(
            lambda: any(map(drive.times, ("verified", "refuted"))) or drive.ended is not None,
            timeout_s=TIMEOUT_S,
            what=lambda: f"the driver has not ended\n{tell_logs()}",
        )
        assert drive.times(verdict) == 1, tell_logs()
        return drive.log_since(0)
    finally:
        for program in programs:
            program.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        pytest.param(command_kafka_streams, "embedded", id="kafka-streams-embedded"),
        pytest.param(command_millrace, "embedded", id="millrace-embedded"),
        pytest.param(command_millrace, "kafka", id="millrace-kafka"),
    ],
)
def test_kafkas_driver_verifies_every_output_though_instances_are_killed(
    own_broker: Broker, driver: list[str], command: Command, protocol: str, tmp_path: Path
) -> None:
    servers = own_broker.bootstrap_servers
    drive_while_instances_are_killed(
        own_broker, driver, lambda state: command(servers, state, protocol), tmp_path
    )
    with Client(servers) as client:
        group_type = "streams" if protocol == "streams" else "consumer"
        assert listed_groups(client)[APPLICATION][0] == group_type


@pytest.mark.parametrize("kind", ["embedded"])
def test_kafkas_driver_refutes_an_application_that_counts_a_record_again(
    own_broker: Broker, driver: list[str], tmp_path: Path
) -> None:
    servers = own_broker.bootstrap_servers
    said = drive_while_instances_are_killed(
        own_broker,
        driver,
        lambda state: command_planted(servers, state, "streams"),
        tmp_path,
        verdict="refuted",
    )
    assert re.search(r"^(sum|cnt) fail: key=", said, re.MULTILINE), said[-5_000:]
