"""Test what applications make of a streams group whose topics are missing, or are wrong.

The statuses come from the broker, so that real Kafka and the embedded broker have to agree on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from typer.testing import CliRunner

from streams import App, StreamsError, serdes
from streams.commands.root import cli
from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def build(topics: Topics, state: Path, **settings: Any) -> App:
    """Build an application that joins two topics of which each has partitions of its own."""
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        group_protocol="streams",
        commit_interval_ms=20,
        **settings,
    )
    rows = app.table(f"{topics.source}-rows", **TEXT)
    lines = app.stream(topics.source, **TEXT)
    lines.join(rows, lambda line, row: line + row, value=serdes.string).to(topics.target)
    return app


def test_a_source_topic_that_is_gone_is_waited_for_and_then_ends_the_application(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Delete it once all is committed: an offset of a topic that is gone can't be."""
    rows = f"{topics.source}-rows"
    topics.create(rows)
    producer = Producer({"bootstrap.servers": topics.servers})
    running = build(topics, tmp_path, task_timeout_ms=6_000).start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    for topic in (rows, topics.source):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"value", b"key", partition)
        assert producer.flush(HANG_LIMIT_S) == 0
    topics.wait_for_records(PARTITIONS)
    topics.delete(rows)
    wait_until(
        lambda: f"the broker says: Source topics {rows} are missing." in caplog.text,
        what=lambda: caplog.text,
    )
    wait_until(lambda: running.state == "REBALANCING", what=lambda: running.state)
    described = ["group", "describe", topics.application, "--bootstrap-servers", topics.servers]
    told = " ".join(CliRunner().invoke(cli, described).stdout.split())
    assert f"source topics {rows} are missing, and may have been read before: " in told
    health = running.health()
    assert not health.healthy
    assert any("has no tasks any more, the broker says: " in each for each in health.why)
    assert f"create-topics {rows} --partitions {PARTITIONS}" in caplog.text
    running.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(StreamsError, match="has no tasks any more, the broker says: ") as ended:
        running.close()
    assert ended.value.code == "MR-035"


def test_joined_topics_of_unequal_partitions_end_the_application(
    topics: Topics, tmp_path: Path
) -> None:
    """Give one of them more partitions while the application runs, so that only the broker sees."""
    topics.create(f"{topics.source}-rows")
    running = build(topics, tmp_path).start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    admin = AdminClient({"bootstrap.servers": topics.servers})
    more = NewPartitions(topics.source, PARTITIONS + 1)
    admin.create_partitions([more])[topics.source].result(HANG_LIMIT_S)
    running.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(StreamsError) as ended:
        running.close()
    assert "wrong numbers of partitions" in str(ended.value)
    assert ended.value.code == "MR-036"


def test_partitions_that_an_input_gets_are_read_though_no_member_leads(
    topics: Topics, tmp_path: Path
) -> None:
    """Let the broker find them: in the classic protocol the leader looks for them."""
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        group_protocol="streams",
        commit_interval_ms=20,
    )
    app.stream(topics.source, **TEXT).to(topics.target)
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        admin = AdminClient({"bootstrap.servers": topics.servers})
        more = NewPartitions(topics.source, PARTITIONS + 1)
        admin.create_partitions([more])[topics.source].result(HANG_LIMIT_S)
        wait_until(lambda: len(running.health().threads[0].tasks) == PARTITIONS + 1, what="tasks")
        producer = Producer({"bootstrap.servers": topics.servers})
        producer.produce(topics.source, b"of the new one", b"key", PARTITIONS)
        assert producer.flush(HANG_LIMIT_S) == 0
        [found] = topics.wait_for_records(1)
        assert found.value == b"of the new one"
