"""Test topics that an application writes, which are deleted and created again while it runs."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, Processor, Record, StreamsError, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

TEXT: Any = {"key": serdes.string, "value": serdes.string}
LIBRDKAFKA = "streams.runtime.clients.librdkafka"


class CommitOnRequest(Processor[str, str, str, str]):
    """Passes records on, and commits where one says so."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)
        if record.value == "commit":
            self.context.commit()


def create_app(topics: Topics, state: Path, **settings: Any) -> App:
    return App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        session_timeout_ms=10_000,
        **{"metadata_max_age_ms": 300, **settings},
    )


def write(topics: Topics, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": topics.servers})
    for value in values:
        producer.produce(topic, value, "key", 0)
    assert producer.flush(HANG_LIMIT_S) == 0


def count_uncommitted(topics: Topics) -> int:
    """Return how many records the output has, those of open transactions too."""
    found = records(topics.servers, topics.target, PARTITIONS, isolation="read_uncommitted")
    return len(list(found))


def test_what_was_not_committed_is_written_again_into_an_output_made_again(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Test that the transaction whose records went with the former topic is repeated."""
    caplog.set_level("DEBUG", LIBRDKAFKA)
    settings = {"commit_interval_ms": 200_000, "transaction_timeout_ms": 300_000}
    app = create_app(topics, tmp_path, **settings)
    app.stream(topics.source, **TEXT).process(CommitOnRequest, **TEXT).to(topics.target)
    seen = re.compile(rf"Topic {topics.target} changed id from (?!A{{22}})")
    with app.start():
        write(topics, topics.source, "1", "2", "3")
        wait_until(lambda: count_uncommitted(topics) == 3, what="the open transaction")
        topics.make_again(topics.target)
        wait_until(lambda: seen.search(caplog.text) is not None, what="the id to be seen")
        write(topics, topics.source, "4", "commit")
        found = topics.wait_for_records(5)
    assert [pair.value for pair in found] == [b"1", b"2", b"3", b"4", b"commit"]
    assert f"output '{topics.target}' is another topic of the same name" in caplog.text


def test_a_repartition_topic_made_again_with_more_records_is_refused_by_name(
    topics: Topics, tmp_path: Path
) -> None:
    app = create_app(topics, tmp_path, commit_interval_ms=50)
    repartitioned = app.stream(topics.source, **TEXT).repartition(name="again")
    repartitioned.to(topics.target)
    topic = f"{topics.application}-again-repartition"
    running = app.start()
    write(topics, topics.source, "1", "2", "3")
    topics.wait_for_records(3)
    topics.make_again(topic)
    write(topics, topic, *("new " + str(number) for number in range(30)))
    refusal = rf"{topic}\[\d\] is of another topic of the same name .*reset the application"
    with pytest.raises(StreamsError, match=refusal):
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with suppress(StreamsError):  # the same, once more
        running.close()
    assert [pair.value for pair in topics.committed()] == [b"1", b"2", b"3"]


def test_an_output_that_was_deleted_is_named_and_not_created_until_a_person_does_so(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(topics, tmp_path, commit_interval_ms=50, metadata_max_age_ms=300_000)
    app.stream(topics.source, **TEXT).group_by_key().count(store="c").to_stream().to(topics.target)
    with app.start():
        write(topics, topics.source, "1")
        topics.wait_for_records(1)
        topics.delete(topics.target)
        write(topics, topics.source, "2", "3")
        named = f"output '{topics.target}' is not on the brokers: it was deleted"
        wait_until(lambda: named in caplog.text, what=lambda: caplog.text)
        assert topics.target not in topics.list_names()
        topics.create(topics.target)
        found = topics.wait_for_records(1)
    assert int.from_bytes(found[-1].value, "big") == 3
