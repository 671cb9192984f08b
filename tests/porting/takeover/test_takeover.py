"""Test that an application of Kafka Streams is stopped, and Millrace goes on: nothing is lost.

Clicks are written, counted in part by Kafka Streams, and more are written while nobody runs. Every
change of a count is written to an output, so that a count must be 1, 2, 3 and so on, each once,
whichever of the two wrote it. Windows and visits that were open go on, and a window that is written
when it closes is written once.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streams.common.partitioning import partition_for_key
from tests.brokers import Broker
from tests.clients.programs import Program
from tests.json_outputs import check_json_output
from tests.porting.takeover.clicks import app
from tests.porting.takeover.steps import PARTITIONS, OffsetImport, compile_java, create_topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

SOURCE = "clicks-in"
OUTPUTS = ("by-user-out", "by-page-out", "minutes-out", "closed-out", "visits-out")
MINUTE_MS, GAP_MS = 60_000, 20_000
SEED = 43

Click = tuple[str, str, int]
"""User, page, timestamp in ms."""

pytestmark = pytest.mark.sampled(1, by="broker")


def draw_clicks(count: int) -> list[Click]:
    """Return clicks of a few users in the order of time, with pauses that end visits.

    They are of the last hours: brokers delete older records of changelogs of windows. Each minute
    of windows is a RocksDB of Kafka Streams, which takes long to open.
    """
    rng, time_ms, clicks = random.Random(SEED), int(time.time() - 10_000) * 1_000, []
    for _ in range(count):
        time_ms += rng.choice((10, 100, 300, 1_000)) if rng.random() < 0.98 else 25_000
        clicks.append((f"user{rng.randrange(12)}", f"page{rng.randrange(5)}", time_ms))
    return clicks


def produce(servers: str, clicks: list[Click]) -> None:
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for user, page, time_ms in clicks:
        producer.produce(SOURCE, page, user, timestamp=time_ms)
    assert producer.flush(60) == 0


def read_output(servers: str, topic: str) -> dict[str, list[int | None]]:
    """Return the values of each key in the order in which they were written."""
    found: dict[str, list[int | None]] = {}
    for record in records(servers, topic, PARTITIONS):
        value = record.value()
        number = None if value is None else int.from_bytes(value, "big")
        found.setdefault(record.key().decode(), []).append(number)
    return found


def count_up(total: Counter[str]) -> dict[str, list[int | None]]:
    return {key: list(range(1, count + 1)) for key, count in total.items()}


def expect_visits(clicks: list[Click]) -> dict[str, int]:
    """Return how many clicks each visit has, with its first and last time."""
    by_user: dict[str, list[list[int]]] = defaultdict(list)
    for user, _, time_ms in clicks:
        visits = by_user[user]
        if visits and time_ms - visits[-1][-1] <= GAP_MS:
            visits[-1].append(time_ms)
        else:
            visits.append([time_ms])
    return {
        f"{user}@{times[0]}/{times[-1]}": len(times)
        for user, visits in by_user.items()
        for times in visits
    }


def name_minute(user: str, time_ms: int) -> str:
    start_ms = time_ms - time_ms % MINUTE_MS
    return f"{user}@{start_ms}/{start_ms + MINUTE_MS}"


def check_outputs(servers: str, clicks: list[Click]) -> None:
    """Check all outputs against what a plain loop over the clicks computes."""
    found = {topic: read_output(servers, topic) for topic in OUTPUTS}
    minutes = Counter(name_minute(user, time_ms) for user, _, time_ms in clicks)
    assert found["by-user-out"] == count_up(Counter(user for user, _, _ in clicks))
    assert found["by-page-out"] == count_up(Counter(page for _, page, _ in clicks))
    assert found["minutes-out"] == count_up(minutes)
    last_ms: dict[int, int] = {}
    for user, _, time_ms in clicks:
        last_ms[partition_for_key(user.encode(), PARTITIONS)] = time_ms
    assert found["closed-out"] == {
        window: [count]
        for window, count in minutes.items()
        if int(window.partition("/")[2])
        <= last_ms[partition_for_key(window.partition("@")[0].encode(), PARTITIONS)]
    }
    visits = {key: values[-1] for key, values in found["visits-out"].items()}
    assert {key: count for key, count in visits.items() if count is not None} == (
        expect_visits(clicks)
    )


@pytest.fixture
def topics(broker: Broker) -> Iterator[None]:
    with create_topics(broker, "clicks", (SOURCE, *OUTPUTS)):
        yield


@pytest.mark.usefixtures("topics")
def test_millrace_goes_on_where_kafka_streams_was_stopped(broker: Broker, tmp_path: Path) -> None:
    servers, clicks = broker.bootstrap_servers, draw_clicks(900)
    before, meanwhile, after = clicks[:400], clicks[400:600], clicks[600:]
    produce(servers, before)
    offset_import = OffsetImport("clicks", broker, tmp_path / "state")
    command = compile_java("Clicks", tmp_path)
    java = Program("clicks", [*command, servers, str(tmp_path / "java"), "exactly_once_v2"])
    try:
        java.wait_for("RUNNING")
        complete = count_up(Counter(page for _, page, _ in before))
        wait_until(
            lambda: read_output(servers, "by-page-out") == complete,
            what=lambda: f"Java has not counted all\n{java.log_tail()}",
        )
        running = offset_import.run("--yes")
        assert running.exit_code == 2, running.output
        assert "has 1 member" in running.output
    finally:
        java.close()  # by SIGTERM: it commits and leaves
    check_outputs(servers, before)
    produce(servers, meanwhile)
    shown = offset_import.run("--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "nothing was changed" in shown.output
    told = offset_import.run("--dry-run", "--json")
    for line in told.stdout.splitlines():
        check_json_output("import-offsets", json.loads(line))
    assert "its workers may start" in offset_import.take_offsets_over()
    again = offset_import.run("--yes")
    assert "there is nothing to import" in again.output
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path / "state")
    with app.start(handle_signals=False) as millrace:
        millrace.wait_for("RUNNING", timeout=HANG_LIMIT_S)
        produce(servers, after)
        total = count_up(Counter(page for _, page, _ in clicks))
        wait_until(lambda: read_output(servers, "by-page-out") == total, what="not all is counted")
    check_outputs(servers, clicks)
