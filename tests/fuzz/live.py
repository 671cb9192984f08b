"""Attack a running broker with hostile connections, beside a client whose work must be right.

The hostile ones send mutations of valid requests, announce frames that never come, hang up in the
middle, and ask without reading the answers. The good one runs transactions on a topic that they
can't name.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import EmbeddedProcess
from tests.fuzz.mutations import mutated
from tests.fuzz.requests import COMPACTED, NAME, corpus
from tests.fuzz.victim import Found
from tests.processes import HANG_LIMIT_S, HOST, wait_until
from tests.reading import FETCH_WAIT_MS

HOSTILE = 8
GROWTH_MB_MAX = 150
_GOOD_TOPIC = "good-topic-that-nobody-else-knows"
_HEADER_BYTES = 16
# What the broker writes down when something was not expected.
_ALARM = re.compile(r"Traceback|CRITICAL|ERROR")


class Hostile(threading.Thread):
    """Runs one attacker after the other, until it is stopped."""

    def __init__(self, port: int, frames: tuple[bytes, ...], seed: int) -> None:
        super().__init__(name=f"hostile-{seed}", daemon=True)
        self._port = port
        self._frames = frames
        self._random = Random(seed)
        self.stopping = False
        self.sent = 0

    def run(self) -> None:
        while not self.stopping:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HOST, self._port), timeout=0.2) as connection,
            ):
                self._attack(connection)

    def _attack(self, connection: socket.socket) -> None:
        kind = self._random.random()
        if kind < 0.1:
            connection.sendall(self._random.choice((b"\x7f\xff\xff\xff", b"\x06\0\0\0", b"GET /")))
        elif kind < 0.2:
            frame = self._framed()
            connection.sendall(frame[: self._random.randint(0, len(frame))])
        elif kind < 0.3:  # and no answer is read
            for _ in range(200):
                connection.sendall(self._framed())
                self.sent += 1
        else:
            connection.settimeout(0.02)
            while not self.stopping:
                connection.sendall(self._framed())
                self.sent += 1
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(65_536):
                        return

    def _framed(self) -> bytes:
        frame = self._random.choice(self._frames)
        at = self._random.choice((0, _HEADER_BYTES, _HEADER_BYTES, _HEADER_BYTES))
        frame = frame[:at] + mutated(frame[at:], self._frames, self._random)
        return len(frame).to_bytes(4, "big") + frame


def attack(seed: int, seconds: float) -> str:
    """Attack the broker and return what was done.

    Raises Found if the good client's work is wrong, or the broker is in a bad state.
    """
    broker = EmbeddedProcess()
    try:
        broker.start()
        frames = _frames(broker)
        threads = [
            Hostile(broker.port, frames, seed * HOSTILE + number) for number in range(HOSTILE)
        ]
        before_mb = _resident_mb(broker)
        with _running(threads):
            expected = _work(broker, time.monotonic() + seconds)
        found = _read(broker)
        if found != expected:
            raise Found(f"{len(found)} records, {len(expected)} were committed, --seed {seed}")
        grown_mb = _resident_mb(broker) - before_mb
        if grown_mb > GROWTH_MB_MAX:
            raise Found(f"the broker grew by {grown_mb:.0f} MB, --seed {seed}")
        if _ALARM.search(broker.log_since(0)):
            raise Found(f"--seed {seed}\n{_alarms(broker)}")
        sent = sum(each.sent for each in threads)
        if not sent or not expected:
            raise Found(f"{sent} hostile requests, {len(expected)} records: nothing was tried")
        return f"{sent} hostile requests, {len(expected)} records, {grown_mb:.0f} MB more"
    finally:
        broker.close()


@contextlib.contextmanager
def _running(threads: list[Hostile]) -> Iterator[None]:
    for each in threads:
        each.start()
    try:
        yield
    finally:
        for each in threads:
            each.stopping = True
        for each in threads:
            each.join(HANG_LIMIT_S)


def _frames(broker: EmbeddedProcess) -> tuple[bytes, ...]:
    """Make valid requests about names that exist; the good topic is made too."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 3})
    kept = {"retention.ms": "-1"}
    topics = [
        NewTopic(NAME, 2, config=kept),
        NewTopic(COMPACTED, 1, config={"cleanup.policy": "compact"}),
        NewTopic(_GOOD_TOPIC, 1, config=kept),
    ]
    for created in admin.create_topics(topics).values():
        created.result(HANG_LIMIT_S)
    described = admin.describe_topics(TopicCollection([NAME]))[NAME].result(HANG_LIMIT_S)
    return corpus(UUID(bytes=base64.b64decode(str(described.topic_id) + "==", b"-_")))


def _work(broker: EmbeddedProcess, deadline: float) -> list[bytes]:
    """Run transactions, each third aborted, until the time is over; return what was committed."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": _GOOD_TOPIC,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(HANG_LIMIT_S)
    committed: list[bytes] = []
    turn = 0
    while time.monotonic() < deadline:
        turn += 1
        values = [b"%d/%d" % (turn, number) for number in range(5)]
        producer.begin_transaction()
        for value in values:
            producer.produce(_GOOD_TOPIC, value, partition=0)
        if turn % 3:
            producer.commit_transaction(HANG_LIMIT_S)
            committed += values
        else:
            producer.abort_transaction(HANG_LIMIT_S)
    return committed


def _read(broker: EmbeddedProcess) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": _GOOD_TOPIC,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
    )
    consumer.assign([TopicPartition(_GOOD_TOPIC, 0, 0)])
    values: list[bytes] = []

    def read() -> bool:
        for message in consumer.consume(10_000, 0.02):
            error = message.error()
            if error is None:
                values.append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                return True
        return False

    wait_until(read, what="the good topic is not read to its end")
    consumer.close()
    return values


def _alarms(broker: EmbeddedProcess) -> str:
    """Return the first alarm of the log, with some lines behind it."""
    lines = broker.log_since(0).splitlines()
    first = next(number for number, line in enumerate(lines) if _ALARM.search(line))
    return "\n".join(lines[first : first + 30])


def _resident_mb(broker: EmbeddedProcess) -> float:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)
    assert found is not None, status
    return int(found[1]) / 1_000
