"""Test inputs as brokers have them: read in the order of time, with more partitions, deleted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from streams import App, Processor, Record, Store, StreamsError, serdes
from streams.errors import InputDeleted
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def settings(topics: Topics, state: Path) -> dict[str, Any]:
    return {
        "bootstrap_servers": topics.servers,
        "state_dir": state,
        "commit_interval_ms": 50,
        "metadata_max_age_ms": 200,
        "session_timeout_ms": 10_000,
    }


def copying(topics: Topics, state: Path, **more: Any) -> App:
    app = App(topics.application, **settings(topics, state), **more)
    stream = app.stream(topics.source, key=serdes.string, value=serdes.string)
    stream.to(topics.target)
    return app


class Note(Processor[str, str, str, str]):
    """Forwards each record, and shares a store with others of its kind.

    So they run in one task.
    """

    stores: ClassVar[Sequence[str | Store]] = ["shared"]

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


def test_records_of_two_topics_go_by_time_and_an_open_transaction_is_not_waited_for(
    topics: Topics, tmp_path: Path
) -> None:
    right = f"{topics.application}-right"
    topics.create(right)
    app = App(topics.application, **settings(topics, tmp_path))
    app.add_store(Store.in_memory("shared", key=serdes.string, value=serdes.string))
    for topic in (topics.source, right):
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        noted = stream.process(Note, key=serdes.string, value=serdes.string)
        noted.to(topics.target)
    plain = Producer({"bootstrap.servers": topics.servers})
    began_ms = time.time_ns() // 1_000_000  # records of long ago would be deleted
    for number in range(400):
        topic = topics.source if number % 3 else right
        plain.produce(topic, str(number), "key", 0, timestamp=began_ms + number)
    assert plain.flush(HANG_LIMIT_S) == 0
    open_one = Producer({"bootstrap.servers": topics.servers, "transactional.id": right})
    open_one.init_transactions(HANG_LIMIT_S)
    open_one.begin_transaction()
    open_one.produce(right, "open", "key", 0, timestamp=began_ms + 1_000)
    assert open_one.flush(HANG_LIMIT_S) == 0
    with app.start():
        found = [int(pair.value) for pair in topics.wait_for_records(400)]
    open_one.abort_transaction(HANG_LIMIT_S)
    assert found == list(range(400))


def test_partitions_that_are_added_while_it_runs_are_read(topics: Topics, tmp_path: Path) -> None:
    topics.load(30)
    with copying(topics, tmp_path).start() as running:
        topics.wait_for_records(30)
        admin = AdminClient({"bootstrap.servers": topics.servers})
        (grown,) = admin.create_partitions([NewPartitions(topics.source, PARTITIONS + 2)]).values()
        grown.result(HANG_LIMIT_S)
        producer = Producer({"bootstrap.servers": topics.servers})
        for number in range(PARTITIONS + 2):
            producer.produce(topics.source, f"late {number}", "key", number)
        assert producer.flush(HANG_LIMIT_S) == 0
        late = [pair for pair in topics.wait_for_records(35) if pair.value.startswith(b"late")]
        assert sorted(pair.value for pair in late) == [
            b"late %d" % n for n in range(PARTITIONS + 2)
        ]
        assert running.metrics()["recoveries"] == 0


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
def test_partitions_that_are_added_are_read_from_their_beginning_with_latest(
    topics: Topics, tmp_path: Path, is_running: bool
) -> None:
    topics.load(30)
    app = copying(topics, tmp_path, auto_offset_reset="latest")

    def write(values: Sequence[str], partition: int) -> None:
        producer = Producer({"bootstrap.servers": topics.servers})
        for value in values:
            producer.produce(topics.source, value, "key", partition)
        assert producer.flush(HANG_LIMIT_S) == 0

    def add_partition() -> None:
        admin = AdminClient({"bootstrap.servers": topics.servers})
        (grown,) = admin.create_partitions([NewPartitions(topics.source, PARTITIONS + 1)]).values()
        grown.result(HANG_LIMIT_S)
        write(["added 1", "added 2"], PARTITIONS)

    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        write(["first"], 0)
        topics.wait_for_records(1)
        if is_running:
            add_partition()
            topics.wait_for_records(3)
    if not is_running:
        add_partition()
        with copying(topics, tmp_path / "another", auto_offset_reset="latest").start():
            topics.wait_for_records(3)
    assert [pair.value for pair in topics.committed()].count(b"first") == 1


def test_an_input_that_is_deleted_while_it_runs_ends_the_application_by_name(
    topics: Topics, tmp_path: Path
) -> None:
    topics.load(30)
    running = copying(topics, tmp_path).start()
    topics.wait_for_records(30)
    admin = AdminClient({"bootstrap.servers": topics.servers})
    (deleted,) = admin.delete_topics([topics.source]).values()
    deleted.result(HANG_LIMIT_S)
    with pytest.raises(StreamsError, match=topics.source):
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with pytest.raises(StreamsError, match=topics.source):
        running.close()


def test_an_application_that_can_not_commit_a_deleted_input_waits_for_no_time_out(
    topics: Topics, tmp_path: Path
) -> None:
    processed: list[str] = []
    timeouts = {"transaction_timeout_ms": 300_000, "commit_interval_ms": 200_000}
    app = App(topics.application, **{**settings(topics, tmp_path), **timeouts})
    stream = app.stream(topics.source, key=serdes.string, value=serdes.string)
    stream.peek(lambda key, value: processed.append(value)).to(topics.target)
    running = app.start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    topics.load(30)
    wait_until(lambda: len(processed) == 30, what=lambda: f"{processed} of 30 are processed")
    topics.delete(topics.source)
    # What a call that has waited for its time-out raises ends with librdkafka's words.
    with pytest.raises(InputDeleted, match=f"can't be committed: '{topics.source}'$"):
        running.close(HANG_LIMIT_S)


def make_again(topics: Topics, records: int) -> None:
    """Delete the input and create it again, with so many records in each partition."""
    admin = AdminClient({"bootstrap.servers": topics.servers})
    admin.delete_topics([topics.source])[topics.source].result(HANG_LIMIT_S)

    def is_made() -> bool:
        try:
            topics.create(topics.source)
        except KafkaException:  # the deletion is still under way
            return False
        return True

    wait_until(is_made, what="the input again")
    plain = Producer({"bootstrap.servers": topics.servers})
    for number in range(records * PARTITIONS):
        plain.produce(topics.source, f"new {number}", "key", number % PARTITIONS)
    assert plain.flush(HANG_LIMIT_S) == 0


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
def test_no_record_of_an_input_that_is_made_again_is_skipped_silently(
    topics: Topics, tmp_path: Path, is_running: bool
) -> None:
    topics.load(30)
    expected = {f"new {number}".encode() for number in range(50 * PARTITIONS)}

    def all_there() -> bool:
        return expected <= {pair.value for pair in topics.committed()}

    refusal = ""
    try:
        with copying(topics, tmp_path).start() as running:
            topics.wait_for_records(30)
            if is_running:
                make_again(topics, 50)
                wait_until(lambda: all_there() or running.state == "ERROR", what="an end")
        if not is_running:
            make_again(topics, 50)
            with copying(topics, tmp_path).start() as running:
                wait_until(lambda: all_there() or running.state == "ERROR", what="an end")
    except StreamsError as error:
        refusal = str(error)
    found = {pair.value for pair in topics.committed()}
    assert expected <= found or topics.source in refusal
