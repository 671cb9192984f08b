"""Test that changelogs of windows lose what has expired, and that a loss of more is refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, serdes, windows
from streams.errors import StreamsError
from streams.processes.running import RunningApp
from tests.brokers import IN_CI, Broker
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

FRIDAY_MS = 1_600_000_020_000  # a whole minute
MINUTE_MS = 60_000  # the least time of a segment on disk


@contextmanager
def counting(broker: Broker, name: str, state: Path) -> Iterator[RunningApp]:
    """Run an application that counts by windows of a minute, which are kept for a minute."""
    app = App(
        name,
        bootstrap_servers=broker.bootstrap_servers,
        state_dir=state,
        repartition_purge_interval_ms=100,
    )
    lines = app.stream(f"{name}-in", key=serdes.string, value=serdes.string)
    counts = lines.group_by_key().windowed_by(windows.tumbling(MINUTE_MS)).count(store="counts")
    to_text = lambda window, count: (str(window.start_ms), str(count))  # noqa: E731
    counts.to_stream().map(to_text, key=serdes.string, value=serdes.string).to(f"{name}-out")
    running = app.start()
    try:
        yield running
    finally:
        running.close()


def write(broker: Broker, topic: str, time_ms: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"x", b"ann", timestamp=time_ms)
    assert producer.flush(HANG_LIMIT_S) == 0


def watermarks(broker: Broker, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
        return found
    finally:
        consumer.close()


def outputs(broker: Broker, topic: str) -> list[tuple[int, int]]:
    """Return the windows, by minutes after the first, with their counts, as they came."""
    found = records(broker.bootstrap_servers, topic, 1)
    return [((int(m.key()) - FRIDAY_MS) // MINUTE_MS, int(m.value())) for m in found]


def test_expired_windows_leave_the_changelog_and_open_ones_move(
    broker: Broker, tmp_path: Path
) -> None:
    name = f"expiring-{uuid.uuid4().hex[:8]}"
    source, out, changelog = f"{name}-in", f"{name}-out", f"{name}-counts-changelog"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics(
        [NewTopic(t, 1, 1, config={"retention.ms": "-1"}) for t in (source, out)]
    ).values():
        made.result(HANG_LIMIT_S)
    with counting(broker, name, tmp_path / "first"):
        for minute in range(8):
            write(broker, source, FRIDAY_MS + minute * MINUTE_MS)
            wait_until(
                lambda count=minute: len(outputs(broker, out)) > count,  # type: ignore[misc]
                what=f"the window of minute {minute}",
            )
        wait_until(
            lambda: watermarks(broker, changelog)[0] > 0,
            what="expired windows leave the changelog",
        )
    with counting(broker, name, tmp_path / "second"):
        write(broker, source, FRIDAY_MS + 7 * MINUTE_MS + 500)
        wait_until(lambda: (7, 2) in outputs(broker, out), what="the open window goes on")
    _, end = watermarks(broker, changelog)
    [deleted] = admin.delete_records([TopicPartition(changelog, 0, end)]).values()
    deleted.result(HANG_LIMIT_S)
    with (  # closing the application raises what has ended its thread
        pytest.raises(
            StreamsError, match=r"windows that may still be open .* stream time was 2020"
        ),
        counting(broker, name, tmp_path / "third") as running,
    ):
        wait_until(lambda: running.state == "ERROR", what="the thread ends")
    with counting(broker, name, tmp_path / "second"):
        write(broker, source, FRIDAY_MS + 7 * MINUTE_MS + 600)
        wait_until(lambda: (7, 3) in outputs(broker, out), what="the trusted store goes on")
