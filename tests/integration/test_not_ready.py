"""Test that what brokers can't answer for the moment is repeated up to a deadline.

An example is a topic that was just created. It holds of commands, examples and Spark; when time is
up, a person reads one message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from confluent_kafka.admin import AdminClient

from coordinator import EmbeddedBroker
from coordinator.faults import RequestFault
from examples import feed, show
from examples.demo import __main__ as demo
from examples.demo import topics as demo_topics
from streams import App, serdes
from streams.commands.create_topics_command import create_topics
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, OutcomeUnknown, StreamsError
from streams.runtime.clients import Admin, fetch_stable_offset
from streams.spark.source.broker_access import BrokerAccess

LINES = [Partition("lines", 0)]
QUESTIONS: dict[str, tuple[str, str, Callable[[Admin], Any], Any]] = {
    "earliest": (
        "ListOffsets",
        "NOT_LEADER_OR_FOLLOWER",
        lambda a: a.fetch_earliest_offsets(LINES)[LINES[0]],
        0,
    ),
    "latest": (
        "ListOffsets",
        "LEADER_NOT_AVAILABLE",
        lambda a: a.fetch_latest_offsets(LINES)[LINES[0]],
        0,
    ),
    "last_stable": (
        "ListOffsets",
        "UNKNOWN_TOPIC_OR_PARTITION",
        lambda a: a.fetch_last_stable_offsets(LINES)[LINES[0]],
        0,
    ),
    "since": (
        "ListOffsets",
        "FENCED_LEADER_EPOCH",
        lambda a: a.fetch_offsets_for_time(LINES, 5)[LINES[0]],
        0,
    ),
    "topic_settings": (
        "DescribeConfigs",
        "REQUEST_TIMED_OUT",
        lambda a: a.fetch_topic_settings(["lines"])["lines"]["cleanup.policy"],
        "delete",
    ),
    "groups": ("ListGroups", "COORDINATOR_LOAD_IN_PROGRESS", lambda a: a.list_groups(), []),
    "delete_before": (
        "DeleteRecords",
        "NOT_LEADER_OR_FOLLOWER",
        lambda a: a.delete_records({LINES[0]: 0}),
        None,
    ),
    "create_topics": (
        "CreateTopics",
        "NOT_CONTROLLER",
        lambda a: a.create_topics({"lines": 1, "more": 1}, {}, -1),
        None,
    ),
}
"""The API that is asked, what it answers at first, the question, and the answer."""


@pytest.fixture
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"lines": 1}) as started:
        yield started


def admin_of(embedded: EmbeddedBroker, retry_s: float) -> Admin:
    servers = embedded.bootstrap_servers
    return Admin({"bootstrap.servers": servers, "client.id": "asks"}, servers, 10, retry_s)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_repeated_until_it_is_answered(embedded: EmbeddedBroker, name: str) -> None:
    api, error, ask, answer = QUESTIONS[name]
    fault = embedded.faults.add(RequestFault("error", api=api, error=error, times=2))
    assert ask(admin_of(embedded, retry_s=20)) == answer
    assert fault.struck == 2


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_stream_thread_is_told_at_once(embedded: EmbeddedBroker, name: str) -> None:
    api, error, ask, _ = QUESTIONS[name]
    fault = embedded.faults.add(RequestFault("error", api=api, error=error))
    with pytest.raises(OutcomeUnknown):
        ask(admin_of(embedded, retry_s=0))
    assert fault.struck == 1


def test_there_is_a_bound_and_the_message_is_the_brokers(
    embedded: EmbeddedBroker,
) -> None:
    embedded.faults.add(RequestFault("error", api="ListOffsets", error="NOT_LEADER_OR_FOLLOWER"))
    began_s = time.monotonic()
    with pytest.raises(OutcomeUnknown, match=r"offset of lines\[0\]: .*NOT_LEADER_FOR_PARTITION"):
        admin_of(embedded, retry_s=0.5).fetch_latest_offsets(LINES)
    assert time.monotonic() - began_s < 20


def test_what_will_not_change_is_not_asked_again(embedded: EmbeddedBroker) -> None:
    refused = RequestFault("error", api="ListOffsets", error="TOPIC_AUTHORIZATION_FAILED")
    fault = embedded.faults.add(refused)
    with pytest.raises(StreamsError, match="TOPIC_AUTHORIZATION_FAILED"):
        admin_of(embedded, retry_s=20).fetch_latest_offsets(LINES)
    assert fault.struck == 1


def metadata(topics: Mapping[str, int]) -> Any:
    """Return the metadata that a broker gives: topics of one partition, each with its leader."""
    listed = {
        topic: SimpleNamespace(
            topic=topic, error=None, partitions={0: SimpleNamespace(leader=leader)}
        )
        for topic, leader in topics.items()
    }
    return SimpleNamespace(topics=listed, brokers={1: SimpleNamespace()})


def test_topics_were_created_once_brokers_list_them_with_their_leaders(
    embedded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [metadata({}), metadata({"new": -1}), metadata({"new": 1})]
    monkeypatch.setattr(AdminClient, "list_topics", lambda self, timeout: answers.pop(0))
    admin_of(embedded, retry_s=20).create_topics({"new": 1}, {}, -1)
    assert not answers


def test_a_topic_that_a_broker_has_not_heard_of_yet_is_asked_for_again(
    embedded: EmbeddedBroker,
) -> None:
    created = threading.Timer(0.3, embedded.create_topics, [{"later": 1}])
    created.start()
    assert set(admin_of(embedded, retry_s=20).fetch_topic_ids(["later"])) == {"later"}
    created.join()


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_an_offset_is_asked_for_again_while_the_coordinator_is_not_ready(
    embedded: EmbeddedBroker, error: str
) -> None:
    settings = {"bootstrap.servers": embedded.bootstrap_servers}
    refused = embedded.faults.add(RequestFault("error", api="OffsetFetch", error=error, times=3))
    assert fetch_stable_offset(settings, "some", LINES[0], 20) is None
    assert refused.struck == 3


def test_spark_asks_again(embedded: EmbeddedBroker) -> None:
    fault = embedded.faults.add(
        RequestFault("error", api="ListOffsets", error="NOT_LEADER_OR_FOLLOWER", times=2)
    )
    assert BrokerAccess(embedded.bootstrap_servers).create_admin().fetch_latest_offsets(LINES) == {
        LINES[0]: 0
    }
    assert fault.struck == 2


def test_the_demo_asks_a_new_topic_for_its_offsets_again(embedded: EmbeddedBroker) -> None:
    topics = demo_topics.WordCountTopics(BrokerAccess(embedded.bootstrap_servers), "")
    embedded.create_topics({"word-count-counts-repartition": demo_topics.PARTITIONS})
    fault = embedded.faults.add(
        RequestFault("error", api="ListOffsets", error="NOT_LEADER_OR_FOLLOWER", times=2)
    )
    assert topics.words_written() == 0
    assert fault.struck == 2


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("OffsetFetch", "NOT_COORDINATOR"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
def test_the_demo_asks_a_coordinator_that_is_not_ready_again(api: str, error: str) -> None:
    named = {
        "lines": demo_topics.PARTITIONS,
        "word-count-counts-repartition": demo_topics.PARTITIONS,
    }
    with EmbeddedBroker(topics=named) as broker:
        topics = demo_topics.WordCountTopics(BrokerAccess(broker.bootstrap_servers), "")
        fault = broker.faults.add(RequestFault("error", api=api, error=error, times=2))
        assert topics.drained()
        assert fault.struck == 2


def test_a_demo_that_can_not_go_on_says_why_in_one_message(
    embedded: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    embedded.faults.add(RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER"))
    with pytest.raises(typer.Exit) as ended:
        demo.demo(broker=embedded.bootstrap_servers, wait_s=0.5)
    assert ended.value.exit_code == 2
    said = capsys.readouterr().out
    announced, _, why = said.partition("\n")
    assert announced == f"creating topics on broker {embedded.bootstrap_servers}"
    assert why.startswith("create topic ")
    assert "NOT_CONTROLLER" in said
    assert "Traceback" not in said


def test_a_demo_says_which_of_its_topics_it_could_not_delete(embedded: EmbeddedBroker) -> None:
    topics = demo_topics.WordCountTopics(BrokerAccess(embedded.bootstrap_servers), "")
    topics.create_topics()
    impatient = demo_topics.WordCountTopics(
        BrokerAccess(embedded.bootstrap_servers), "", wait_s=0.2
    )
    silent = embedded.faults.add(RequestFault("lose-request", api="DeleteTopics", times=1))
    assert "counts-by-word: no answer in 0.2 s" in impatient.delete_topics()
    assert silent.struck == 1
    assert topics.delete_topics() == ""
    assert "lines" not in admin_of(embedded, retry_s=0).fetch_partition_counts()


def one_line(capsys: pytest.CaptureFixture[str], call: Callable[[], object]) -> str:
    with pytest.raises(typer.Exit) as ended:
        call()
    assert ended.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


def test_feeding_an_example_asks_again_and_says_why_it_can_not_go_on(
    embedded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        feed.main("dedupe", count=10, bootstrap_servers=embedded.bootstrap_servers)

    fault = embedded.faults.add(
        RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER", times=2)
    )
    run()
    assert fault.struck == 2
    capsys.readouterr()
    refused = embedded.faults.add(
        RequestFault("error", api="Produce", error="TOPIC_AUTHORIZATION_FAILED")
    )
    assert "did not take" in one_line(capsys, run)
    refused.remove()
    embedded.faults.add(RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER"))
    monkeypatch.setattr(feed, "BROKER_WAIT_S", 0.5)
    assert "NOT_CONTROLLER" in one_line(capsys, run)


def test_showing_an_example_says_why_it_can_not(
    embedded: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        show.main("dedupe", bootstrap_servers=embedded.bootstrap_servers)

    assert "there is no topic 'events-once'" in one_line(capsys, run)
    embedded.create_topics({"events-once": 1})
    run()
    assert capsys.readouterr().out == "events-once: 0 records\n"
    refused = RequestFault("error", api="Fetch", error="TOPIC_AUTHORIZATION_FAILED")
    embedded.faults.add(refused)
    assert "can't be read" in one_line(capsys, run)


def test_the_command_that_creates_topics_asks_again(
    embedded: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = embedded.faults.add(
        RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER", times=2)
    )
    create_topics(["new"], 2, bootstrap_servers=embedded.bootstrap_servers, state_dir=tmp_path)
    assert fault.struck == 2
    assert capsys.readouterr().out.startswith("new on ")


def test_an_application_asks_again_for_its_ledger(
    embedded: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App("counts")
    app.stream("lines", key=serdes.string, value=serdes.string).peek(lambda k, v: None)
    servers = embedded.bootstrap_servers
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path, ledger=True)
    fault = embedded.faults.add(
        RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER", times=2)
    )
    with app.start():
        assert fault.struck == 2
    fault = embedded.faults.add(RequestFault("error", api="CreateTopics", error="NOT_CONTROLLER"))
    monkeypatch.setattr("streams.processes.start.BROKER_WAIT_S", 0.5)
    app = App("more-counts")  # the ledger of the first one exists now
    app.stream("lines", key=serdes.string, value=serdes.string).peek(lambda k, v: None)
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path, ledger=True)
    with pytest.raises(ConfigError, match=r"ledger can't be made: .*NOT_CONTROLLER"):
        app.start()
