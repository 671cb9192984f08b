"""Test the commands of every day on an embedded broker and on Apache Kafka."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from typer.testing import CliRunner, Result

from coordinator.embedded import EmbeddedBroker
from coordinator.errors import Code
from coordinator.faults import RequestFault
from streams.commands.root import cli
from streams.processes.embedded import ensure_embedded_broker
from tests import brokers
from tests.brokers import IN_CI, Broker
from tests.conformance import batches
from tests.conformance.calls import create_topic, settled
from tests.conformance.calls import produce as produce_batch
from tests.conformance.producers import Producer as WireProducer
from tests.conformance.wire import Api, Client
from tests.integration.cluster import Command, Topics, Worker
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

PROGRAM = """
from streams import App, serdes
app = App("{name}", commit_interval_ms=50, heartbeat_interval_ms=200)
lines = app.stream("{name}-in", key=serdes.string, value=serdes.string)
words = lines.group_by(lambda key, value: value, key=serdes.string)
words.count(store="counts").to_stream().to("{name}-out")
"""


class Commands:
    """Runs `millrace` in this process, with the options that name one cluster."""

    def __init__(self, *options: str) -> None:
        self.options = options

    def run(self, *arguments: str, typed: str = "") -> Result:
        return CliRunner().invoke(cli, [*arguments, *self.options], input=typed)

    def output(self, *arguments: str, typed: str = "") -> list[str]:
        """Return the lines that a command prints, which must end with status 0."""
        result = self.run(*arguments, typed=typed)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    def rows(self, *arguments: str, typed: str = "") -> list[dict[str, Any]]:
        """Return the rows that a command prints as JSON."""
        return [json.loads(line) for line in self.output(*arguments, "--json", typed=typed)]

    def refusal(self, *arguments: str) -> str:
        """Return the one line with which a command ends that must end with status 2."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        (line,) = result.stderr.splitlines()
        return line


@pytest.fixture
def commands(broker: Broker) -> Commands:
    return Commands("--bootstrap-servers", broker.bootstrap_servers)


@pytest.mark.parametrize("ending", ["changelog", "repartition"])
def test_names_of_internal_topics_are_refused_unless_their_settings_are_given(
    commands: Commands, unique: Callable[[str], str], ending: str
) -> None:
    """Made with the brokers' settings such a topic would lose records."""
    internal, output = f"{unique('app')}-counts-{ending}", unique("out")
    refusal = commands.refusal("create-topics", output, internal)
    assert f"{internal}: this is the name of an internal topic" in refusal
    assert "an application creates itself when it starts" in refusal
    assert output not in refusal
    listed = {row["topic"] for row in commands.rows("topics", "list")}
    assert listed.isdisjoint({internal, output})
    settings = ("--topic-setting", "cleanup.policy=compact")
    commands.output("create-topics", internal, *settings)
    head, *_ = commands.rows("topics", "describe", internal)
    assert head["settings"]["cleanup.policy"] == "compact"
    commands.output("create-topics", internal)  # it is there, and stays as it is


def test_topics_are_created_described_read_and_deleted(
    commands: Commands, unique: Callable[[str], str]
) -> None:
    topic = unique("daily")
    create = ("create-topics", topic, "--partitions", "2")
    commands.output(*create, "--topic-setting", "retention.ms=600000")
    assert commands.rows("topics", "create", topic, "--partitions", "3") == [
        {"topic": topic, "partitions": 2}
    ], "it is the same command by its former name, and the topic stays as it is"
    setting = ("--topic-setting", "retention.ms=soon")
    assert "INVALID_CONFIG" in commands.refusal("create-topics", unique("x"), *setting)
    typed = "a:1\nb:2\na:3\n"
    options = ("--key-separator", ":", "--value-serde", "int64", "--header", "by=me")
    assert commands.rows("produce", topic, *options, typed=typed) == [
        {"topic": topic, "records": 3}
    ]
    assert {"topic": topic, "partitions": 2, "offsets": 3} in commands.rows("topics", "list")
    head, *partitions = commands.rows("topics", "describe", topic)
    assert (head["partitions"], head["settings"]["retention.ms"]) == (2, "600000")
    assert sum(each["end"] for each in partitions) == 3
    assert all(each["in_sync"] == each["replicas"] for each in partitions)
    read = ("consume", topic, "--value-serde", "int64", "--until-end")
    assert sorted(commands.output(*read)) == ["a\t1", "a\t3", "b\t2"]
    records = commands.rows(*read)
    assert {record["headers"][0][1] for record in records} == {"me"}
    assert len(commands.output(*read, "-n", "1")) == 1
    last = next(each for each in records if each["value"] == 3)
    place = ("--partition", str(last["partition"]), "--from", str(last["offset"]))
    assert commands.output(*read, *place) == ["a\t3"]
    assert commands.output(*read, "--from", "1h") == commands.output(*read)
    assert commands.output(*read, "--from", "end") == []
    assert commands.output(*read, "--from", str(int(time.time()) + 10) + "000") == []
    tail = commands.rows("topics", "tail", topic, "-n", "2", "--value-serde", "int64")
    assert [each["timestamp_ms"] for each in tail] == sorted(
        each["timestamp_ms"] for each in records
    )[-2:]
    assert "Nobody can be asked" in commands.refusal("topics", "delete", topic)
    assert commands.rows("topics", "delete", topic, "--yes") == [{"topic": topic, "deleted": True}]
    wait_until(
        lambda: f"there is no topic '{topic}'" in commands.run("topics", "describe", topic).stderr,
        what="the topic to be gone",
    )


def begin_transaction(topics: Topics, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": transactional_id})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce(topics.source, "open", "k", partition=0)
    assert producer.flush(HANG_LIMIT_S) == 0
    return producer


def test_an_open_transaction_is_listed_and_aborted_by_its_id(
    commands: Commands, topics: Topics
) -> None:
    name = f"{topics.application}-txn"
    producer = begin_transaction(topics, name)
    (listed,) = (row for row in commands.rows("txn", "list") if row["transactional_id"] == name)
    assert (listed["state"], listed["topics"]) == ("Ongoing", [f"{topics.source}[0]"])
    (opened,) = commands.rows("txn", "list", "--topic", topics.source)
    assert (opened["partition"], opened["start_offset"], opened["hanging"]) == (0, 0, False)
    assert opened["transactional_id"] == name
    read = ("consume", topics.source, "--until-end")
    assert commands.output(*read) == []
    assert commands.output(*read, "--uncommitted") == ["k\topen"]
    place = ("--topic", topics.source, "--partition", "0", "--start-offset", "0")
    assert f"by its transactional id, '{name}'" in commands.refusal("txn", "abort", *place)
    assert "Nobody can be asked" in commands.refusal("txn", "abort", name)
    assert commands.rows("txn", "abort", name, "--yes") == [
        {"transactional_id": name, "aborted": True}
    ]
    with pytest.raises(KafkaException, match=r"[Ff]enced|newer producer"):
        producer.commit_transaction(HANG_LIMIT_S)
    wait_until(
        lambda: not commands.rows("txn", "list", "--topic", topics.source), what="the marker"
    )
    assert commands.output(*read) == []
    refused = commands.refusal("txn", "abort", name, "--yes")
    assert "has no open transaction: its state is " in refused
    assert "there is no transactional id 'nobody'" in commands.refusal("txn", "abort", "nobody")


def test_a_transaction_whose_owner_cannot_be_described_is_not_taken_for_a_hanging_one() -> None:
    with EmbeddedBroker(topics={"in": 1}) as broker:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "at-work"}
        )
        producer.init_transactions(HANG_LIMIT_S)
        producer.begin_transaction()
        producer.produce("in", "open", "k", partition=0)
        assert producer.flush(HANG_LIMIT_S) == 0
        broker.faults.add(
            RequestFault("error", api="DescribeTransactions", error="COORDINATOR_LOAD_IN_PROGRESS")
        )
        commands = Commands("--bootstrap-servers", broker.bootstrap_servers)
        (opened,) = commands.rows("txn", "list", "--topic", "in")
        assert opened["hanging"] is None
        place = ("--topic", "in", "--partition", "0", "--start-offset", "0")
        refused = commands.refusal("txn", "abort", *place, "--yes")
        assert "is unknown: it may be one of 'at-work' (COORDINATOR_LOAD_IN_PROGRESS)" in refused
        producer.commit_transaction(HANG_LIMIT_S)


def test_a_transaction_whose_coordinator_is_away_is_not_taken_for_a_hanging_one() -> None:
    with EmbeddedBroker(topics={"in": 1}) as broker:
        with Client(broker.bootstrap_servers) as client:
            settled(
                lambda: client.send(Api.FIND_COORDINATOR, 2, key="lost", key_type=1),
                (Code.COORDINATOR_NOT_AVAILABLE,),
            )
            lost = WireProducer.init(client, "lost")
            lost.add("in")
            batch = batches.encode(
                b"a", producer_id=lost.producer_id, epoch=lost.epoch, sequence=0, transactional=True
            )
            produce_batch(client, "in", batch, transactional_id="lost")
        broker.faults.add(RequestFault("error", api="FindCoordinator", error="NOT_COORDINATOR"))
        # It lists nothing, as a broker of several does that is no coordinator of the id.
        broker.faults.add(
            RequestFault("error", api="DescribeTransactions", error="TRANSACTIONAL_ID_NOT_FOUND")
        )
        commands = Commands("--bootstrap-servers", broker.bootstrap_servers)
        (opened,) = commands.rows("txn", "list", "--topic", "in")
        assert opened["hanging"] is None
        place = ("--topic", "in", "--partition", "0", "--start-offset", "0")
        refused = commands.refusal("txn", "abort", *place, "--yes")
        assert "is unknown, and it may be at work: no coordinator" in refused
        commands.output("txn", "abort", *place, "--owner-unknown", "--yes")
        assert commands.rows("txn", "list", "--topic", "in") == []


def test_a_hanging_transaction_is_found_and_aborted_in_its_partition(broker: Broker) -> None:
    if broker.kind == "address":
        pytest.skip("the files of this broker are not at hand")
    made = brokers.make(broker.kind)
    try:
        made.start()
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
            answer = produce_batch(client, "words", batch, transactional_id="lost")
            assert answer.error_code == Code.NONE
        made.kill()
        for directory in made.data_dir.glob("__transaction_state-*"):
            shutil.rmtree(directory)
        made.restart()
        commands = Commands("--bootstrap-servers", made.bootstrap_servers)
        commands.output("produce", "words", "b")
        (opened,) = commands.rows("txn", "list", "--topic", "words")
        assert (opened["start_offset"], opened["hanging"]) == (0, True)
        assert commands.output("consume", "words", "--until-end") == []
        place = ("--topic", "words", "--partition", "0", "--start-offset")
        assert "begins at offset 1" in commands.refusal("txn", "abort", *place, "1")
        commands.output("txn", "abort", *place, "0", "--yes")
        assert commands.rows("txn", "list", "--topic", "words") == []
        assert commands.output("consume", "words", "--until-end") == ["null\tb"]
    finally:
        made.close()


@pytest.fixture
def program(topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the module of an application with a repartition topic; return module:variable."""
    module = topics.application.replace("-", "_")
    (tmp_path / f"{module}.py").write_text(PROGRAM.format(name=topics.application))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLRACE_STATE_DIR", str(tmp_path / "state"))
    return f"{module}:app"


def test_an_application_is_looked_at_reset_and_counts_anew(
    commands: Commands, topics: Topics, program: str, tmp_path: Path
) -> None:
    name = topics.application

    def run_application() -> Command:
        return Command(["-m", "streams", "run", program, *commands.options], tmp_path)

    values = ["x", "y", "x", "x"]
    commands.output("produce", topics.source, *values, "--key", "k")
    command = run_application()
    try:
        wait_until(
            lambda: "x\t3" in commands.output(
                "consume", topics.target, "--until-end", "--value-serde", "int64"
            ),
            what="the counts",
        )  # fmt: skip
        assert {"group": name, "state": "Stable", "protocol": "classic"} in commands.rows(
            "group", "list"
        )
        assert "has 1 member (" in commands.refusal("group", "reset", program, "--yes")
        dump = ("state", "dump", program, "counts")
        assert "is in use by process" in Commands().refusal(*dump)
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()

    assert sorted(Commands().output(*dump)) == ["x\t3", "y\t1"]
    stores = Commands().rows("state", "inspect", name)
    assert sum(each["entries"] for each in stores) == 2
    assert sorted(commands.output("changelog", "dump", program, "counts", "--latest")) == [
        "x\t3", "y\t1",
    ]  # fmt: skip
    dry = commands.rows("group", "reset", program, "--dry-run")
    assert [row["what"] for row in dry if row["change"] == "delete topic"] == [
        f"{name}-counts-changelog", f"{name}-counts-repartition",
    ]  # fmt: skip
    assert sum(row["now"] or 0 for row in dry if row["change"] == "set offset") == len(values)
    assert commands.rows("group", "reset", name, "--dry-run") == dry
    assert "Nobody can be asked" in commands.run("group", "reset", program).stderr
    assert sorted(Commands().output(*dump)) == ["x\t3", "y\t1"], "nothing was changed so far"
    assert commands.rows("group", "reset", program, "--yes") == dry
    assert not (tmp_path / "state" / name).exists()
    report = json.loads("".join(commands.output("group", "describe", program, "--json")))
    assert sum(each["lag"] for each in report["unassigned"] if each["lag"]) == len(values)

    command = run_application()
    try:
        latest = ("changelog", "dump", program, "counts", "--latest")
        wait_until(
            # The changelog is a new topic, which is not there at first.
            lambda: sorted(commands.run(*latest).stdout.splitlines()) == ["x\t3", "y\t1"],
            what=lambda: f"counts anew: {commands.run(*latest).output}",
        )
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()
    read = ("consume", topics.target, "--until-end", "--value-serde", "int64")
    counts = commands.output(*read)
    assert counts.count("x\t3") == counts.count("y\t1") == 2, "once before, and once after"
    assert "x\t4" not in counts


def test_a_reset_to_the_end_processes_nothing_twice(
    commands: Commands, topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    worker = new_worker()
    worker.start()
    topics.load(20)
    topics.wait_for_counts(20)
    worker.finish()
    state = ("--state-dir", str(tmp_path / "state"))
    rows = commands.rows("group", "reset", topics.application, "--to", "end", "--yes", *state)
    assert sum(row["then"] for row in rows if row["change"] == "set offset") == 20
    report = json.loads("".join(commands.output("group", "describe", topics.application, "--json")))
    assert {each["lag"] for each in report["unassigned"]} == {0}


def test_commands_name_what_is_not_there(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is no group 'nobody'" in commands.refusal("group", "reset", "nobody", "--yes")
    assert "there is no topic 'nothing'" in commands.refusal("consume", "nothing")
    monkeypatch.setattr("streams.commands.cluster_clients.BROKER_WAIT_S", 0.5)
    away = Commands("--bootstrap-servers", "127.0.0.1:1")
    assert "127.0.0.1:1" in away.refusal("topics", "list")
    embedded = Commands("--state-dir", str(tmp_path / "none"))
    for command in (("topics", "list"), ("group", "list"), ("txn", "list"), ("consume", "x")):
        assert f"no embedded broker runs in '{tmp_path}/none'" in embedded.refusal(*command)
    assert not (tmp_path / "none").exists(), "nothing was started"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a project by `millrace new`, whose embedded broker is ended with the test."""
    monkeypatch.chdir(tmp_path)
    Commands().output("new", "views")
    monkeypatch.chdir(tmp_path / "views")
    monkeypatch.setenv("MILLRACE_STATE_DIR", "state")
    yield tmp_path / "views"
    known = tmp_path / "views" / "state" / "broker" / "process"
    if known.exists():
        os.kill(int(known.read_text().split()[1]), signal.SIGKILL)


def test_a_new_project_runs_as_its_readme_says_and_again_at_a_change(project: Path) -> None:
    commands = Commands()
    ensure_embedded_broker(project / "state")
    commands.output("topics", "create", "views-lines", "views-counts")
    command = Command(["-m", "streams", "run", "app:app", "--reload"], project)
    try:
        read = ("consume", "views-counts", "--value-serde", "int64", "--until-end")

        def wait_for_count(line: str) -> None:
            wait_until(
                lambda: line in commands.output(*read), what=lambda: f"{line}\n{command.log_tail()}"
            )

        commands.output("produce", "views-lines", "To be or not to be")
        wait_for_count("to\t2")
        source = (project / "app.py").read_text()
        (project / "app.py").write_text(source.replace("line.lower()", "line.upper()"))
        wait_until(
            lambda: "app.py changed: the application is started again" in command.log_since(0),
            what=command.log_tail,
        )
        commands.output("produce", "views-lines", "to do")
        wait_for_count("DO\t1")
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()
    assert "DO\t1" in commands.output("state", "dump", "app:app", "counts")
