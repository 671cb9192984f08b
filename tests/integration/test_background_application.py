"""Test that an application of `App.start` commits and leaves when its process is told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import Broker

pytestmark = pytest.mark.sampled(1, by="broker")

PROGRAM = """
import signal, sys, time
from streams import App, serdes

if {own_handler}:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
app = App(
    {name!r}, bootstrap_servers={servers!r}, state_dir={state_dir!r},
    commit_interval_ms=60_000, transaction_timeout_ms=120_000
)
seen = []
source = app.stream({topic!r}, key=serdes.string, value=serdes.string)
source.peek(lambda key, value: print("seen", flush=True)).to({topic!r} + "-out")
running = app.start(handle_signals={handles})
running.wait_for("RUNNING")
print("runs", flush=True)
{waits}
"""
WITHOUT_BLOCK = "time.sleep(60)"
WITH_BLOCK = """
with running:
    try:
        time.sleep(60)
    finally:
        print("finally", flush=True)
"""


@contextmanager
def program(
    broker: Broker,
    name: str,
    state_dir: Path,
    waits: str = WITHOUT_BLOCK,
    *,
    handles: bool = True,
    own_handler: bool = False,
) -> Iterator[subprocess.Popen[str]]:
    """Run an application that has processed one record and not committed it."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(name, 1), NewTopic(f"{name}-out", 1)]).values():
        future.result(10)
    text = PROGRAM.format(
        name=name,
        servers=broker.bootstrap_servers,
        state_dir=str(state_dir),
        topic=name,
        waits=waits,
        handles=handles,
        own_handler=own_handler,
    )
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(name, b"value", b"key")
        producer.flush(10)
        assert process.stdout.readline() == "seen\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def committed_offset(broker: Broker, name: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": name})
    try:
        (found,) = consumer.committed([TopicPartition(name, 0)], timeout=10)
        return int(found.offset)
    finally:
        consumer.close()


def count_members(broker: Broker, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    described = admin.describe_consumer_groups([group])[group].result(10)
    return len(described.members)


@pytest.mark.parametrize("waits", [WITHOUT_BLOCK, WITH_BLOCK], ids=["at exit", "with"])
def test_sigterm_commits_and_leaves_the_group(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path, waits: str
) -> None:
    name = unique("background")
    with program(broker, name, tmp_path, waits) as process:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=40)
        assert process.returncode == 128 + signal.SIGTERM
        assert ("finally" in out) is (waits is WITH_BLOCK)
    assert committed_offset(broker, name) == 1
    assert count_members(broker, name) == 0


@pytest.mark.parametrize(
    ("handles", "own_handler", "status"), [(False, False, -signal.SIGTERM), (True, True, 5)]
)
def test_a_program_may_handle_signals_itself(
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
    handles: bool,
    own_handler: bool,
    status: int,
) -> None:
    name = unique("own-signals")
    with program(broker, name, tmp_path, handles=handles, own_handler=own_handler) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == status
    # What it does not close itself is closed at exit, where it has not opted out of that.
    assert (count_members(broker, name) == 0) is handles
