"""Test Kafka Streams with the streams protocol (KIP-1071): instances are killed, counts are exact.

It runs with each version of Kafka Streams that has the protocol; a sample runs one of them.

Three instances of two threads each count words. Two are killed with -9, and one joins; an embedded
broker is killed, too. Every change of a count is written, so that the output
of a word must be 1, 2, 3 and so on, each once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from coordinator.errors import Code
from tests.answers import codes
from tests.brokers import Broker
from tests.clients.programs import JVM_FLAGS, Program, need, run
from tests.conformance.calls import create_topic, metadata
from tests.conformance.streams_members import describe, tasks_of
from tests.conformance.wire import Api, Client
from tests.differential.peer import JARS
from tests.kafka.versions import YARDSTICK
from tests.processes import wait_until
from tests.reading import records
from tests.sampling import draw_sample

PARTITIONS = 4
WORDS = [f"word{number}" for number in range(40)]
GROUP_RESOURCE = 32

pytestmark = pytest.mark.sampled(1, by="broker")
VERSIONS = draw_sample("Kafka Streams with the streams protocol", ("4.3.0", YARDSTICK), 1)
# A JVM that starts beside others takes seconds; an instance that is killed is missed soon.
GROUP_CONFIGS = {
    "streams.session.timeout.ms": "3000",
    "streams.heartbeat.interval.ms": "200",
    "streams.num.standby.replicas": "1",
}


@pytest.fixture(scope="module", params=VERSIONS)
def counting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the word count with a version of Kafka Streams."""
    need("javac")
    into = tmp_path_factory.mktemp("counting")
    path = replace(JARS, version=request.param).class_path()
    source = str(Path(__file__).parent / "streams_java" / "Counting.java")
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), source])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", "Counting"]


def produce_lines(broker: Broker, topic: str, line_count: int, seed: int) -> Counter[str]:
    """Write lines of three words each; return how often each word is in them."""
    draw, written = random.Random(seed), Counter[str]()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(line_count):
        words = draw.choices(WORDS, k=3)
        written.update(words)
        producer.produce(topic, " ".join(words).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return written


def read_counts(broker: Broker, topic: str) -> dict[str, list[int]]:
    """Return the counts of each word in the order in which they were written."""
    counts: dict[str, list[int]] = {}
    for record in records(broker.bootstrap_servers, topic, PARTITIONS):
        counts.setdefault(record.key().decode(), []).append(int.from_bytes(record.value(), "big"))
    return counts


def configure_group(client: Client, group: str) -> None:
    changes = [
        {"name": name, "config_operation": 0, "value": value}
        for name, value in GROUP_CONFIGS.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": changes}
    answer = client.send(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert set(codes(answer)) == {Code.NONE}, answer


def test_counts_are_exact_though_instances_are_killed(
    broker: Broker, counting: list[str], unique: Callable[[str], str], tmp_path: Path
) -> None:
    application, source, output = unique("counting"), unique("lines"), unique("counts")
    with Client(broker.bootstrap_servers) as client:
        configure_group(client, application)
        for topic in (source, output):
            create_topic(client, topic, PARTITIONS)
    expected = produce_lines(broker, source, 4_000, seed=1)
    arguments = [broker.bootstrap_servers, application, source, output]
    programs: list[Program] = []

    def start() -> Program:
        name = f"instance-{len(programs)}"
        programs.append(Program(name, [*counting, *arguments, str(tmp_path / name)]))
        return programs[-1]

    def await_counts() -> None:
        def are_complete() -> bool:
            found = {word: counts[-1] for word, counts in read_counts(broker, output).items()}
            return found == expected

        wait_until(
            are_complete,
            what=lambda: (
                "the counts are not complete\n"
                + "\n".join(program.log_tail() for program in programs)
            ),
        )

    try:
        for _ in range(3):
            start()
        for program in programs:
            program.wait_for("RUNNING")
        await_counts()
        expected += produce_lines(broker, source, 4_000, seed=2)
        programs[0].kill()
        start().wait_for("RUNNING")
        if broker.kind == "embedded":
            broker.kill()
            broker.restart()
        expected += produce_lines(broker, source, 4_000, seed=3)
        await_counts()
        programs[1].kill()
        expected += produce_lines(broker, source, 2_000, seed=4)
        await_counts()
        check_group(broker, application)
    finally:
        for program in programs:
            program.close()
    for word, counts in read_counts(broker, output).items():
        assert counts == list(range(1, expected[word] + 1)), word


def check_group(broker: Broker, application: str) -> None:
    """Check who has the tasks once two instances are left, and which topics there are."""
    with Client(broker.bootstrap_servers) as client:
        wait_until(
            lambda: describe(client, application)[0].group_state == "Stable",
            what=lambda: f"the group is not stable: {describe(client, application)}",
        )
        [group] = describe(client, application)
        names = [f"{application}-words-repartition", f"{application}-counts-changelog"]
        found = metadata(client, *names).topics
    assert [len(topic.partitions) for topic in found] == [PARTITIONS, PARTITIONS]
    active: Counter[tuple[str, int]] = Counter()
    by_process: dict[str, set[tuple[str, int]]] = {}
    for member in group.members:
        tasks = tasks_of(member.assignment)
        active.update(tasks["active"])
        on_process = by_process.setdefault(member.process_id, set())
        both = tasks["active"] | tasks["standby"]
        assert on_process.isdisjoint(both), f"{both} is on {member.process_id} twice"
        on_process |= both
    assert len(by_process) == 2
    assert set(active.values()) == {1}
    assert len(active) == 2 * PARTITIONS
