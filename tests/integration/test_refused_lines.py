"""Test that `produce` names lines that brokers refuse, on an embedded broker and Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import IN_CI, Broker
from tests.integration.test_daily_commands import Commands
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

BYTES_MAX = 2000
LARGEST = BYTES_MAX - 71
"""The longest value for a key of one byte: 61 of the batch, 2 + 3 + 1 of the record, 2 + 2 of key
and value."""


@pytest.fixture
def topic(broker: Broker, unique: Callable[[str], str]) -> str:
    name = unique("refused-lines")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    new = NewTopic(name, 1, 1, config={"max.message.bytes": str(BYTES_MAX)})
    admin.create_topics([new])[name].result(20)
    # Kafka's controller has it then, and a broker a moment later.
    wait_until(
        lambda: name in admin.list_topics(timeout=HANG_LIMIT_S).topics, what="a broker to list it"
    )
    return name


@pytest.fixture
def commands(broker: Broker) -> Commands:
    return Commands("--bootstrap-servers", broker.bootstrap_servers)


def read(commands: Commands, topic: str) -> list[str]:
    return commands.output("consume", topic, "--until-end")


def test_small_records_are_written_whatever_the_topic_takes_and_a_large_one_is_named(
    commands: Commands, topic: str
) -> None:
    good = [f"k:{number}" for number in range(3000)] + ["k:" + "x" * LARGEST]
    command = ("produce", topic, "--key-separator", ":")
    for options in ((), ("--transaction",)):
        result = commands.run(
            *command, *options, typed="\n".join([*good, "k:" + "x" * (LARGEST + 1)])
        )
        assert result.exit_code == 2
        assert f"line 3002: it has {BYTES_MAX + 1} bytes with its headers" in result.stderr
    assert result.stderr.endswith("; nothing was written\n")
    assert read(commands, topic) == [each.replace(":", "\t") for each in good]


def test_a_line_is_named_that_only_a_broker_can_refuse(
    commands: Commands, topic: str, tmp_path: Path
) -> None:
    # Whether a compressed record fits is known when it is compressed.
    config = tmp_path / "millrace.toml"
    config.write_text('[producer]\n"compression.type" = "gzip"\n')
    lines = ["a", "b", "x" * 5000, Random(5).randbytes(5000).hex(), "c"]
    command = ("produce", topic, "--config", str(config))
    for options in ((), ("--transaction",)):
        result = commands.run(*command, *options, typed="\n".join(lines))
        assert result.exit_code == 2
        assert "line 4: it has 10072 bytes with its headers" in result.stderr
    assert result.stderr.endswith("; nothing was written\n")
    assert read(commands, topic)[:3] == [f"null\t{each}" for each in lines[:3]]
