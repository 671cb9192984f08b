"""Test kcat from Debian, an older librdkafka with which people look into a broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.brokers import Broker
from tests.clients.programs import need, run
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client

LINES = [f"line {number} {'x' * 50}" for number in range(500)]


@pytest.fixture
def kcat(broker: Broker) -> Callable[..., str]:
    """Return a function that runs kcat with arguments and returns what it printed."""
    need("kcat")

    def run_kcat(*arguments: str, input_: str = "") -> str:
        return run(["kcat", "-q", "-b", broker.bootstrap_servers, *arguments], input_=input_)

    return run_kcat


@pytest.fixture
def topic(broker: Broker, unique: Callable[[str], str]) -> str:
    """Create a topic of two partitions and return its name."""
    name = unique("topic")
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, name, 2)
    return name


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_from_each_codec(kcat: Callable[..., str], topic: str, codec: str) -> None:
    kcat("-P", "-t", topic, "-p", "1", "-z", codec, input_="\n".join(LINES))
    assert kcat("-C", "-t", topic, "-p", "1", "-o", "beginning", "-e").splitlines() == LINES


def test_a_transaction_is_read_when_it_is_committed(kcat: Callable[..., str], topic: str) -> None:
    for number in range(2):
        sent = "\n".join(LINES[number::2])
        kcat("-P", "-t", topic, "-p", "0", "-X", f"transactional.id={topic}", input_=sent)
    committed = ("-X", "isolation.level=read_committed")
    read = kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", *committed)
    assert read.splitlines() == LINES[0::2] + LINES[1::2]
    assert kcat("-Q", "-t", f"{topic}:0:-1").split() == [topic, "[0]", "offset", str(500 + 2)]


def test_metadata_and_offsets_are_shown(kcat: Callable[..., str], topic: str) -> None:
    kcat("-P", "-t", topic, "-p", "1", "-K", "=", input_="a=1\nb=2\n")
    assert f'topic "{topic}" with 2 partitions' in kcat("-L", "-t", topic)
    found = kcat("-C", "-t", topic, "-p", "1", "-e", "-o", "1", "-f", "%p %o %k %s\n")
    assert found == "1 1 b 2\n"


def test_a_group_reads_all_partitions_and_leaves(
    kcat: Callable[..., str], topic: str, group: str
) -> None:
    for partition in ("0", "1"):
        kcat("-P", "-t", topic, "-p", partition, input_=partition)
    settings = ("-X", "auto.offset.reset=earliest", "-X", "enable.partition.eof=true")
    assert sorted(kcat("-G", group, "-e", *settings, topic).split()) == ["0", "1"]
    assert kcat("-G", group, "-e", *settings, topic) == ""
