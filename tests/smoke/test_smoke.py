"""Test Kafka's own smoke test of Kafka Streams with the streams protocol, while instances die.

Kafka's driver (SmokeTestDriver) writes the input and verifies each of the application's twelve
outputs: windows, suppressed results, joins of tables, counts and averages. Kafka publishes these
classes for 4.3, not for 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.clients.programs import JVM_FLAGS, Program, need, run
from tests.clients.test_kafka_streams import configure_group
from tests.conformance.calls import LATEST, create_topic, list_offset, listed_groups
from tests.conformance.wire import Client
from tests.kafka.jars import Jars
from tests.processes import wait_until

HERE = Path(__file__).parent
JARS = Jars(HERE / "pom.xml", "smoke", "4.3.0")
APPLICATION = "SmokeTest"
PARTITIONS = 5
KEYS, RECORDS_PER_KEY, SECONDS = 10, 400, 30
TOPICS = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum"),
    *("sws-raw", "sws-suppressed", "cnt", "avg", "tagg"),
)
TIMEOUT_S = 900.0  # JVMs start beside others, and the driver waits for results for minutes


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that runs Kafka's driver."""
    need("javac")
    into, path = tmp_path_factory.mktemp("smoke"), JARS.class_path()
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), str(HERE / "Smoke.java")])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", "Smoke"]


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """Provide an embedded broker, since the names of topics and group are given."""
    made = EmbeddedProcess(SETTINGS)
    try:
        made.start()
        yield made
    finally:
        made.close()


def count_echoed(client: Client) -> int:
    """Return how many offsets the topic has to which all input is copied."""
    found = [list_offset(client, "echo", LATEST, partition=each) for each in range(PARTITIONS)]
    return sum(each.offset for each in found)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_kafkas_driver_verifies_every_output_though_instances_are_killed(
    own_broker: Broker, driver: list[str], protocol: str, tmp_path: Path
) -> None:
    servers = own_broker.bootstrap_servers
    programs: list[Program] = []
    written = KEYS * RECORDS_PER_KEY

    def start(name: str, *command: str) -> Program:
        programs.append(Program(name, command))
        return programs[-1]

    def start_instance() -> Program:
        name = f"instance-{len(programs)}"
        properties = {
            "bootstrap.servers": servers,
            "processing.guarantee": "exactly_once_v2",
            "group.protocol": protocol,
            "state.dir": str(tmp_path / name),
            **({"session.timeout.ms": "6000"} if protocol == "classic" else {}),
        }
        path = tmp_path / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        main = "org.apache.kafka.streams.tests.StreamsSmokeTest"
        return start(name, "java", *JVM_FLAGS, "-cp", JARS.class_path(), main, str(path), "process")

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
        own_broker.kill()
        own_broker.restart()
        await_echo(written // 2)
        third.kill()
        start_instance()
        wait_until(
            lambda: any(map(drive.times, ("verified", "refuted"))) or drive.ended is not None,
            timeout_s=TIMEOUT_S,
            what=lambda: f"the driver has not ended\n{tell_logs()}",
        )
        assert drive.times("verified") == 1, tell_logs()
        with Client(servers) as client:
            kind = "streams" if protocol == "streams" else "consumer"
            assert listed_groups(client)[APPLICATION][0] == kind
    finally:
        for program in programs:
            program.close()
