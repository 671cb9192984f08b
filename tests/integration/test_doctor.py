"""Test that `millrace doctor` names planted faults, on an embedded broker and on Apache Kafka.

Those of certificates are in tests/security, and a healthy application on three nodes in
tests/cluster.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from typer.testing import CliRunner

from coordinator.embedded import EmbeddedBroker
from coordinator.errors import Code
from coordinator.faults import RequestFault
from streams import App
from streams.commands.root import cli
from streams.errors import StreamsError
from tests import brokers
from tests.brokers import IN_CI, Broker
from tests.conformance import batches
from tests.conformance.calls import create_topic, settled
from tests.conformance.calls import produce as produce_batch
from tests.conformance.producers import Producer as WireProducer
from tests.conformance.wire import Api, Client
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(2, by="test")]

PROGRAM = """
import time
from streams import App, serdes

app = App(
    "{name}", bootstrap_servers="{servers}", state_dir="{state}", commit_interval_ms={interval_ms},
    heartbeat_interval_ms=200, health_port=0,
)

def count_slowly(key, value, count):
    time.sleep({slow_s})
    return count + 1

lines = app.stream("{name}-in", key=serdes.string, value=serdes.string)
{between}
counts = lines.group_by_key().aggregate(lambda: 0, count_slowly, value=serdes.int64, store="counts")
counts.to_stream().to("{name}-out")
"""


class Patient:
    """Holds an application of which one thing is wrong, and asks the doctor for it."""

    def __init__(self, topics: Topics, directory: Path) -> None:
        self.topics = topics
        self.name = topics.application
        self.state = directory / "state"
        self._directory = directory
        self._module = self.name.replace("-", "_")

    def build(self, *, slow_s: float = 0.0, interval_ms: int = 50, between: str = "") -> App:
        """Write the program of the application, and import it; `between`: before its store."""
        (self._directory / f"{self._module}.py").write_text(
            PROGRAM.format(
                name=self.name,
                servers=self.topics.servers,
                state=self.state,
                slow_s=slow_s,
                interval_ms=interval_ms,
                between=between,
            )
        )
        importlib.invalidate_caches()
        sys.modules.pop(self._module, None)
        found: App = importlib.import_module(self._module).app
        return found

    @contextmanager
    def runs(self, **options: Any) -> Iterator[Any]:
        with self.build(**options).start(handle_signals=False) as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
            yield running

    def process_all(self, records: int = 60) -> None:
        """Run until all of some records are committed, and end."""
        self.topics.load(records)
        with self.runs() as running:
            wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
            wait_until(self.has_no_lag, what="all records to be committed")

    def has_no_lag(self) -> bool:
        found = self.ask(by_id=True)
        return not any("lag is" in e["what"] and "lag is 0" not in e["what"] for e in found)

    def ask(self, *, by_id: bool = False) -> list[dict[str, str]]:
        """Return the doctor's findings."""
        app = self.name if by_id else f"{self._module}:app"
        options = ["--bootstrap-servers", self.topics.servers, "--state-dir", str(self.state)]
        result = CliRunner().invoke(cli, ["doctor", app, "--json", *options])
        printed = json.loads(result.stdout)
        assert result.exit_code == printed["status"], result.output
        findings: list[dict[str, str]] = printed["findings"]
        return findings

    def complaints(self, *, by_id: bool = False) -> dict[str, dict[str, str]]:
        """Return the warnings and errors by their points."""
        return {
            each["point"]: each
            for each in self.ask(by_id=by_id)
            if each["verdict"] in ("warning", "error")
        }


@pytest.fixture
def patient(topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    monkeypatch.syspath_prepend(tmp_path)
    return Patient(topics, tmp_path)


def test_a_healthy_application_has_no_complaint(patient: Patient) -> None:
    patient.topics.load(60)
    with patient.runs() as running:
        wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
        assert patient.complaints() == {}
        assert patient.complaints(by_id=True) == {}
        everything = CliRunner().invoke(
            cli, ["doctor", "--all", "--json", "--bootstrap-servers", patient.topics.servers]
        )
        found = json.loads(everything.stdout)["findings"]
        assert patient.name in {each["application"] for each in found}


def test_a_reader_of_uncommitted_records_is_named(
    patient: Patient, unique: Callable[[str], str]
) -> None:
    patient.process_all()
    topics, reader = patient.topics, unique("dashboard")
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": unique("open")})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce(topics.target, "1", "k", partition=0)
    assert producer.flush(HANG_LIMIT_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": topics.servers,
            "group.id": reader,
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    place = TopicPartition(topics.target, 0)
    _, end = consumer.get_watermark_offsets(place, HANG_LIMIT_S)
    consumer.commit(offsets=[TopicPartition(topics.target, 0, end)], asynchronous=False)
    consumer.close()
    found = patient.complaints()["isolation of readers"]
    assert (found["verdict"], repr(reader) in found["what"]) == ("error", True)
    producer.abort_transaction(HANG_LIMIT_S)


def test_a_reader_is_named_that_committed_before_transactions_had_ended(
    patient: Patient, unique: Callable[[str], str]
) -> None:
    patient.process_all()
    topics, wrong, right = patient.topics, unique("dashboard"), unique("sink")
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": unique("late")})
    producer.init_transactions(HANG_LIMIT_S)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(topics.target, "1", "k", partition=0)
        assert producer.flush(HANG_LIMIT_S) == 0
        end = commit_end(topics, wrong)
        time.sleep(0.01)  # the brokers' clocks count milliseconds
        producer.commit_transaction(HANG_LIMIT_S)
        commit_end(topics, right, end)
    found = patient.complaints()["isolation of readers"]
    assert (found["verdict"], repr(wrong) in found["what"]) == ("error", True)
    (unknown,) = [
        each
        for each in patient.ask()
        if each["point"] == "isolation of readers" and each["verdict"] == "not looked at"
    ]
    assert repr(right) in unknown["what"]
    assert "4 commits of theirs" in unknown["what"]
    assert unknown["remedy"] == "", "neither has a logger of requests: Kafka is run without Log4j"


def commit_end(topics: Topics, group: str, offset: int | None = None) -> int:
    """Commit an offset of the output's first partition for a group; the high watermark for None."""
    options = {"bootstrap.servers": topics.servers, "isolation.level": "read_uncommitted"}
    consumer = Consumer({**options, "group.id": group})
    place = TopicPartition(topics.target, 0)
    place.offset = offset or consumer.get_watermark_offsets(place, HANG_LIMIT_S)[1]
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    return int(place.offset)


def test_a_zombie_is_named(patient: Patient, new_worker: Callable[..., Worker]) -> None:
    worker = new_worker(session_timeout_ms=2_000)
    worker.start()
    patient.topics.load(60)
    wait_until(lambda: "zombies" in points_that_are_fine(patient), what="the worker to join")
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: "zombies" in patient.complaints(by_id=True), what="a session to end")
        found = patient.complaints(by_id=True)["zombies"]
        assert f"process {worker.pid}" in found["what"]
        assert "kill -CONT" in found["remedy"]
    finally:
        os.kill(worker.pid, signal.SIGCONT)


def points_that_are_fine(patient: Patient) -> set[str]:
    return {each["point"] for each in patient.ask(by_id=True) if each["verdict"] == "fine"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Provide a file system in memory of 4 MB."""
    path = tmp_path / "state"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems can be mounted by root only")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_is_named(patient: Patient, small_disk: Path) -> None:
    patient.build()
    (small_disk / patient.name).mkdir()
    assert "disk space" not in patient.complaints()
    with pytest.raises(OSError, match="No space"):
        (small_disk / "other").write_bytes(bytes(5 << 20))
    found = patient.complaints()["disk space"]
    assert (found["verdict"], str(small_disk) in found["what"]) == ("error", True)


def test_a_slow_function_is_named(patient: Patient) -> None:
    patient.topics.load(3_000)
    with patient.runs(slow_s=0.05, interval_ms=500) as running:
        wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
        said = ""

        def is_named() -> bool:
            nonlocal said
            said = patient.complaints().get("processing time", {}).get("what", "")
            return "count_slowly" in said

        # The worker's watchdog may just have seen the thread between two records.
        wait_until(is_named, what=lambda: f"the function to be named: {said}")
    assert "ms a record" in said


def test_a_skewed_partition_is_named_with_its_key(patient: Patient) -> None:
    patient.process_all()
    producer = Producer({"bootstrap.servers": patient.topics.servers, "linger.ms": 5})
    for number in range(1_500):
        producer.produce(patient.topics.source, f"value {number}", "celebrity", partition=1)
    producer.flush(HANG_LIMIT_S)
    found = patient.complaints()
    assert f"{patient.topics.source}[1]" in found["skew of partitions"]["what"]
    assert "have one key" in found["skew of keys"]["what"]
    assert "celebrity" not in json.dumps(found)


def test_a_poison_record_is_named_by_its_place(patient: Patient) -> None:
    patient.process_all(60)
    producer = Producer({"bootstrap.servers": patient.topics.servers})
    producer.produce(patient.topics.source, b"\xff\xfe", "key", partition=2)
    producer.flush(HANG_LIMIT_S)
    found = patient.complaints()["next records"]
    assert (found["verdict"], f"{patient.topics.source}[2]@" in found["what"]) == ("error", True)
    assert "--partition 2 --from" in found["remedy"]


def test_a_changelog_that_was_deleted_is_named(patient: Patient) -> None:
    patient.process_all()
    changelog = f"{patient.name}-counts-changelog"
    patient.topics.delete(changelog)
    wait_until(lambda: changelog not in patient.topics.list_names(), what="the deletion")
    found = patient.complaints()["internal topics"]
    assert (found["verdict"], changelog in found["what"]) == ("error", True)
    assert f"group reset {patient.name.replace('-', '_')}:app" in found["remedy"]


def test_another_program_with_the_same_id_is_named_and_no_reset_is_advised(
    patient: Patient,
) -> None:
    patient.topics.load(60)
    with patient.runs() as running:
        wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
        patient.build(between='lines = lines.repartition(name="by-key")')
        first, *others = patient.ask()
    assert (first["verdict"], first["point"], first["code"]) == ("error", "version", "MR-033")
    assert "another application id" in first["remedy"]
    assert not any("group reset" in each["remedy"] for each in (first, *others))
    assert not any(each["verdict"] == "error" for each in others)


def test_an_input_that_was_deleted_is_named_with_the_partitions_that_it_had(
    patient: Patient,
) -> None:
    patient.process_all()
    patient.topics.delete(patient.topics.source)
    wait_until(lambda: patient.topics.source not in patient.topics.list_names(), what="it to go")
    found = patient.complaints()["topics"]
    command = f"create-topics {patient.topics.source} --partitions {PARTITIONS}"
    assert (found["verdict"], command in found["remedy"]) == ("error", True)


@pytest.mark.parametrize("partitions", [PARTITIONS, PARTITIONS + 2, PARTITIONS - 1])
def test_an_input_that_was_made_again_while_no_worker_runs_is_named_with_what_mends_it(
    patient: Patient, partitions: int
) -> None:
    patient.process_all()
    patient.topics.make_again(patient.topics.source, partitions)
    wait_until(lambda: "inputs" in patient.complaints(), what="it to be seen")
    found = patient.complaints()["inputs"]
    assert found["verdict"] == "error"
    assert "was deleted and created again" in found["what"]
    assert (f"now, and had {PARTITIONS}" in found["what"]) == (partitions != PARTITIONS)
    assert "inputs" in patient.complaints(by_id=True)
    run_advice(found["remedy"], ("topics delete", "create-topics", "--made-again"))
    assert "inputs" not in patient.complaints()
    patient.topics.load(60)
    with patient.runs() as running:
        wait_until(
            lambda: sum(count for _, count in running.store("counts").all()) == 120,
            what="the records of both topics to be counted",
        )


STATELESS = """
from streams import App, serdes

app = App(
    "{name}", bootstrap_servers="{servers}", state_dir="{state}", commit_interval_ms=50,
    heartbeat_interval_ms=200,
)
app.stream("{name}-in", key=serdes.string, value=serdes.string).to("{name}-out")
"""


def test_what_an_application_without_state_does_with_an_input_made_again_is_said(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PROGRAM", STATELESS)
    patient.process_all()
    assert "inputs" not in patient.complaints()
    patient.topics.make_again(patient.topics.source)
    assert "inputs" not in patient.complaints(), "it has no record"
    patient.topics.load(3)
    found = patient.complaints()["inputs"]
    assert (found["verdict"], patient.topics.source in found["what"]) == ("warning", True)
    assert "the next start reads all 3 offsets that are there" in found["consequence"]


def test_an_input_that_was_made_again_while_a_worker_runs_is_named(patient: Patient) -> None:
    patient.topics.load(60)
    with suppress(StreamsError), patient.runs() as running:  # the worker's own, at its end
        wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
        wait_until(patient.has_no_lag, what="all records to be committed")
        patient.topics.make_again(patient.topics.source, PARTITIONS + 2)
        wait_until(lambda: "inputs" in patient.complaints(), what="it to be seen")
        found = patient.complaints()["inputs"]
        wait_until(lambda: running.state == "ERROR", what="the worker to end")
    assert f"5 partitions now, and had {PARTITIONS}" in found["what"]
    assert patient.complaints()["inputs"]["remedy"] == found["remedy"]


def run_advice(remedy: str, commands: Sequence[str]) -> None:
    """Run those command lines of a remedy that have one of these words, in their order."""
    for line in re.findall(r"`([^`]+)`", remedy):
        if any(each in line for each in commands):
            words = shlex.split(line.split("millrace ", 1)[1])
            done = CliRunner().invoke(cli, [*words, "--yes"] if "create" not in line else words)
            assert done.exit_code == 0, done.output


def test_partitions_that_were_added_are_named_with_a_way_that_keeps_the_state(
    patient: Patient,
) -> None:
    load_as_java_does(patient.topics)
    with patient.runs() as running:
        wait_until(
            lambda: sum(count for _, count in running.store("counts").all()) == 60,
            what="all records to be counted",
        )
    source = patient.topics.source
    admin = AdminClient({"bootstrap.servers": patient.topics.servers})
    admin.create_partitions([NewPartitions(source, PARTITIONS + 3)])[source].result(HANG_LIMIT_S)
    wait_until(
        lambda: "partitions of internal topics" in patient.complaints(), what="them to be seen"
    )
    found = patient.complaints()["partitions of internal topics"]
    advised = f".repartition(partitions={PARTITIONS})"
    assert advised in found["remedy"]
    load_as_java_does(patient.topics)
    between = f'lines = lines{advised.removesuffix(")")}, name="as-before")'
    with patient.runs(between=between) as running:
        wait_until(
            lambda: sum(count for _, count in running.store("counts").all()) == 120,
            what="all records to be counted, those of the state included",
        )
        counts = dict(running.store("counts").all())
    assert counts == {f"key-{number}": 20 for number in range(6)}


def load_as_java_does(topics: Topics) -> None:
    """Write 60 records of six keys, placed by their keys as Millrace and Java's clients do."""
    options = {"bootstrap.servers": topics.servers, "partitioner": "murmur2_random"}
    producer = Producer(options)
    for number in range(60):
        producer.produce(topics.source, "value", f"key-{number % 6}")
    assert producer.flush(HANG_LIMIT_S) == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_that_uses_the_id_of_the_application_is_named(
    patient: Patient, protocol: str
) -> None:
    patient.build()
    consumer = Consumer(
        {
            "bootstrap.servers": patient.topics.servers,
            "group.id": patient.name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([patient.topics.source])
    try:

        def is_named() -> bool:
            consumer.poll(0.1)
            return "members of others" in patient.complaints()

        wait_until(is_named, what="the consumer to be named")
    finally:
        consumer.close()


def test_records_that_were_deleted_before_they_were_processed_are_named(patient: Patient) -> None:
    patient.process_all()
    patient.topics.load(60)
    place = TopicPartition(patient.topics.source, 0)
    admin = AdminClient({"bootstrap.servers": patient.topics.servers})
    consumer = Consumer({"bootstrap.servers": patient.topics.servers, "group.id": "looks"})
    _, end = consumer.get_watermark_offsets(place, HANG_LIMIT_S)
    consumer.close()
    place.offset = end
    for future in admin.delete_records([place]).values():
        future.result(HANG_LIMIT_S)
    found = patient.complaints()["retention of inputs"]
    assert (found["verdict"], f"{patient.topics.source}[0] begins at" in found["what"]) == (
        "error",
        True,
    )


def test_a_transaction_that_hangs_is_named(broker: Broker) -> None:
    if broker.kind == "address":
        pytest.skip("the files of this broker are not at hand")
    made = brokers.make(broker.kind)
    try:
        made.start()
        plant_hanging_transaction(made)
        options = ["--json", "--bootstrap-servers", made.bootstrap_servers]
        found = json.loads(CliRunner().invoke(cli, ["doctor", *options]).stdout)["findings"]
        (hanging,) = [each for each in found if each["verdict"] == "error"]
        assert "offset 0 of words[0] hangs" in hanging["what"]
        command = hanging["remedy"].split("`")[1].split(" txn ")[1].split()
        done = CliRunner().invoke(cli, ["txn", *command, "--yes"])
        assert done.exit_code == 0, done.output
        again = json.loads(CliRunner().invoke(cli, ["doctor", *options]).stdout)
        assert again["status"] != 2
    finally:
        made.close()


def plant_hanging_transaction(made: Broker) -> None:
    """Leave a transaction open that its coordinator has forgotten, as its log was lost."""
    with Client(made.bootstrap_servers) as client:
        settled(
            lambda: client.send(Api.FIND_COORDINATOR, 2, key="lost", key_type=1),
            (Code.COORDINATOR_NOT_AVAILABLE,),
        )
        create_topic(client, "words")
        lost = WireProducer.init(client, "lost")
        lost.add("words")
        batch = batches.encode(
            b"a", producer_id=lost.producer_id, epoch=lost.epoch, sequence=0, transactional=True
        )
        assert produce_batch(client, "words", batch, transactional_id="lost").error_code == 0
    made.kill()
    for directory in made.data_dir.glob("__transaction_state-*"):
        shutil.rmtree(directory)
    made.restart()
    producer = Producer({"bootstrap.servers": made.bootstrap_servers})
    producer.produce("words", b"b")
    producer.flush(HANG_LIMIT_S)


def test_an_overloaded_coordinator_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with EmbeddedBroker(topics={"late-in": PARTITIONS, "late-out": PARTITIONS}) as broker:
        topics = Topics.__new__(Topics)
        topics.servers, topics.application = broker.bootstrap_servers, "late"
        patient = Patient(topics, tmp_path)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("late-in", "value", "key")
        producer.flush(HANG_LIMIT_S)
        with patient.runs() as running:
            wait_until(lambda: running.metrics()["commits"] > 0, what="a commit")
            broker.faults.add(RequestFault("delay", api="OffsetFetch", delay_ms=1_300))
            found = patient.complaints()["load of coordinators"]
            assert "group coordinator takes 1." in found["what"]
