"""Test what `millrace produce` writes, and says of it, on an embedded broker and Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from coordinator.embedded import EmbeddedBroker
from coordinator.faults import RequestFault
from streams.commands.root import cli
from tests.brokers import IN_CI, Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.reading import records

pytestmark = IN_CI


def produce(servers: str, topic: str, *options: str, typed: bytes = b"") -> Result:
    command = ["produce", topic, *options, "--bootstrap-servers", servers]
    return CliRunner().invoke(cli, command, input=typed)


def told_count(said: str) -> int:
    found = re.search(r"(\d+) records? w\w+ written, the next is line (\d+): go on", said)
    assert found, said
    assert int(found[2]) == int(found[1]) + 1
    return int(found[1])


@pytest.mark.sampled(1, by="broker")
def test_headers_lines_and_transactions_are_written_as_they_are_typed(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    topic, servers = unique("typed"), broker.bootstrap_servers
    with Client(servers) as client:
        create_topic(client, topic)
    listed = '[["x", "1"], ["x", null], ["", ""], ["x", "0xff"]]'
    assert (
        produce(servers, topic, "--headers", listed, typed="\ufeffa\rb\r\n".encode()).exit_code == 0
    )
    assert produce(servers, topic, "c", "--header", "x=1", "--header", "x=").exit_code == 0
    typed = b"k:d\nk:e\noops\n"
    said = produce(servers, topic, "--transaction", "--key-separator", ":", typed=typed)
    assert said.stderr.endswith("between key and value; nothing was written\n")
    assert produce(servers, topic, "--transaction", typed=b"f\ng").exit_code == 0
    said = produce(servers, topic, "--key-separator", ":", typed=b":h\n:i\noops\n")
    assert told_count(said.stderr) == 2
    found = list(records(servers, topic, 1))
    assert [each.value() for each in found] == [b"a\rb", b"c", b"f", b"g", b"h", b"i"]
    assert [each.headers() for each in found[:3]] == [
        [("x", b"1"), ("x", None), ("", b""), ("x", b"\xff")], [("x", b"1"), ("x", b"")], None,
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["lose-answer", "lose-request"])
def test_a_broker_that_falls_silent_leaves_the_number_that_it_has_acknowledged(
    monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setenv("MILLRACE_REQUEST_TIMEOUT_MS", "2000")
    lines = [b"%d" % number for number in range(25_000)]
    with EmbeddedBroker(topics={"in": 1}) as broker:
        first = produce(broker.bootstrap_servers, "in", typed=b"before\n")
        assert first.exit_code == 0
        broker.faults.add(RequestFault(action, api="Produce", after=1))
        result = produce(broker.bootstrap_servers, "in", typed=b"\n".join(lines))
        assert (result.exit_code, "not delivered" in result.stderr) == (2, True), result.output
        count = told_count(result.stderr)
        broker.faults.clear()
        written = [each.value() for each in records(broker.bootstrap_servers, "in", 1)][1:]
        assert written[:count] == lines[:count]
        assert (len(written) > count) == (action == "lose-answer")
        assert ("may be written as well" in result.stderr) == (len(lines) > count)
        rest = produce(
            broker.bootstrap_servers, "in", "--from-line", str(count + 1), typed=b"\n".join(lines)
        )
        assert rest.stderr.startswith(f"{len(lines) - count} records to in")
