"""Test records with headers whose names are not UTF-8, which Kafka takes from any client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from coordinator.errors import Code
from streams import App, Processor, Record, StreamsError, dead_letter, serdes
from streams.commands.root import cli
from tests.brokers import IN_CI
from tests.conformance import batches
from tests.conformance.calls import produce, settled
from tests.conformance.wire import Client
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

GOOD = [(b"good", b"1")]
ONE_WRONG = [(b"before", b"1"), (b"M\xfcller", b"\xff("), (b"after", None)]
TWO_WRONG = [(b"caf\xe9", b"1"), (b"M\xfcller", b"2")]


def write(topics: Topics, values_and_headers: Sequence[tuple[bytes, Any]]) -> None:
    """Write records to the first partition of the source, as bytes that no client checks."""
    with Client(topics.servers) as client:
        for value, headers in values_and_headers:
            data = batches.encode((b"key", value), headers=headers)
            # Real Kafka leads a new partition a moment after it has answered.
            write_batch = partial(produce, client, topics.source, data)
            answered = settled(write_batch, passing=(Code.NOT_LEADER_OR_FOLLOWER,))
            assert answered.error_code == Code.NONE


class PassOn(Processor[str, str, str, str]):
    """Forwards each record with the headers that it reads."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_headers(record.headers))


def copying(topics: Topics, state: Path, **settings: Any) -> App:
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        **settings,
    )
    stream = app.stream(topics.source, key=serdes.string, value=serdes.string, name="read")
    stream.process(PassOn, key=serdes.string, value=serdes.string).to(topics.target)
    return app


def read_all(topics: Topics, topic: str) -> Iterator[tuple[bytes, list[tuple[str, bytes | None]]]]:
    for message in topics.messages(topic):
        yield message.value(), message.headers() or []


def test_a_name_that_is_not_utf8_has_replacement_characters_as_in_java(
    topics: Topics, tmp_path: Path
) -> None:
    write(topics, [(b"0", GOOD), (b"1", ONE_WRONG), (b"2", GOOD)])
    with copying(topics, tmp_path).start():
        topics.wait_for_records(3)
    assert list(read_all(topics, topics.target)) == [
        (b"0", [("good", b"1")]),
        (b"1", [("before", b"1"), ("M\ufffdller", b"\xff("), ("after", None)]),
        (b"2", [("good", b"1")]),
    ]


def test_a_record_with_two_such_names_is_one_dead_letter(topics: Topics, tmp_path: Path) -> None:
    dead = f"{topics.application}-dead"
    topics.create(dead)
    write(topics, [(b"0", GOOD), (b"1", TWO_WRONG), (b"2", GOOD)])
    app = copying(topics, tmp_path, deserialization_handler=dead_letter(dead))
    with app.start():
        topics.wait_for_records(2)
        wait_until(lambda: any(topics.messages(dead)), what="no dead letter")
    assert [value for value, _ in read_all(topics, topics.target)] == [b"0", b"2"]
    ((value, headers),) = read_all(topics, dead)
    assert value == b"1"
    assert headers[:2] == [("caf\ufffd", b"1"), ("\ufffd", b"2")]
    assert ("__streams.errors.offset", b"1") in headers


def test_without_a_handler_the_error_names_the_record(topics: Topics, tmp_path: Path) -> None:
    write(topics, [(b"0", GOOD), (b"1", TWO_WRONG)])
    running = copying(topics, tmp_path).start()
    expected = rf"step 'read' can't read {topics.source}\[0\]@1: the names of 2 headers are not UTF"
    with pytest.raises(StreamsError, match=expected):
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with pytest.raises(StreamsError, match=expected):
        running.close()


def test_commands_show_such_records(topics: Topics) -> None:
    write(topics, [(b"0", GOOD), (b"1", TWO_WRONG)])
    options = ("--bootstrap-servers", topics.servers, "--json")
    shown = CliRunner().invoke(cli, ["consume", topics.source, "--count", "2", *options])
    assert shown.exit_code == 0, shown.output
    assert [orjson.loads(line)["headers"] for line in shown.stdout.splitlines()] == [
        [["good", "1"]],
        [["caf\ufffd", "1"], ["\ufffd", "2"]],
    ]
