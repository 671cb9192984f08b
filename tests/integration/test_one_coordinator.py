"""Test that tasks with producers of their own go on while one's coordinator does not answer.

And that a worker waits for its coordinators, however long they are away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from coordinator import EmbeddedBroker
from coordinator.faults import RequestFault
from streams import App, serdes
from streams.errors import StreamsError
from streams.processes.running import RunningApp
from tests.brokers import SETTINGS, Broker
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.silent_coordinator import EmbeddedRule, KafkaProxy, SilentCoordinator
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

SILENT = PARTITIONS - 1
"""The partition whose task's coordinator does not answer."""


@pytest.fixture
def coordinator(broker: Broker) -> Iterator[SilentCoordinator]:
    """Provide a broker of its own, of the kind that is tested, with a coordinator to silence."""
    if broker.kind == "address":
        pytest.skip("a broker at an address can't be made silent")
    made: SilentCoordinator = EmbeddedRule() if broker.kind == "embedded" else KafkaProxy()
    yield made
    made.close()


def start(
    topics: Topics,
    state: Path,
    *,
    request_timeout_ms: int = UNREACHED_MS,
    task_timeout_ms: int = UNREACHED_MS,
    guarantee: Any = "exactly_once",
) -> RunningApp:
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        processing_guarantee=guarantee,
        commit_interval_ms=20,
        request_timeout_ms=request_timeout_ms,
        task_timeout_ms=task_timeout_ms,
    )
    app.stream(topics.source, key=serdes.string, value=serdes.string).to(topics.target)
    return app.start()


def write_round(topics: Topics, value: str) -> None:
    """Write the value into each partition of the source."""
    producer = Producer({"bootstrap.servers": topics.servers})
    for partition in range(PARTITIONS):
        producer.produce(topics.source, value.encode(), b"key", partition)
    assert producer.flush(HANG_LIMIT_S) == 0


def wait_for_rounds(topics: Topics, rounds: int, *, partitions: int) -> None:
    """Wait until the output has each value of so many rounds once, from so many partitions."""
    expected = sorted([f"round {each + 1}" for each in range(rounds)] * partitions)

    def read_values() -> list[str]:
        return sorted(pair.value.decode() for pair in topics.committed())

    wait_until(lambda: read_values() == expected, what=lambda: f"{read_values()}: {expected}")


def test_one_silent_coordinator_holds_up_its_own_task_alone(
    coordinator: SilentCoordinator, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Check tasks that go on, a stop while one waits, and the one that comes after.

    No call is ended by a time-out: what goes on has waited for nothing.
    """
    topics = Topics(coordinator.servers, unique("silent"))
    coordinator.silence(f"{topics.source}_{SILENT}")
    with start(topics, tmp_path):
        for number in (1, 2):
            write_round(topics, f"round {number}")
            wait_for_rounds(topics, number, partitions=PARTITIONS - 1)
    with start(topics, tmp_path) as running:
        wait_until(
            lambda: [each.task for each in running.health().threads[0].waiting] == [f"0_{SILENT}"],
            what="the one task to wait",
        )
        coordinator.heal()
        running.wait_for("RUNNING", HANG_LIMIT_S)
        write_round(topics, "round 3")
        wait_for_rounds(topics, 3, partitions=PARTITIONS)
        assert running.metrics()["recoveries"] == 0


def test_a_task_whose_coordinator_stays_silent_ends_the_application_with_its_name(
    coordinator: SilentCoordinator, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topics = Topics(coordinator.servers, unique("silent"))
    coordinator.silence(f"{topics.source}_{SILENT}")
    refusal = rf"task 0_{SILENT} has got no producer for 1000 ms \(task_timeout_ms\)"
    with (
        pytest.raises(StreamsError, match=refusal),
        start(topics, tmp_path, request_timeout_ms=500, task_timeout_ms=1_000) as running,
    ):
        running.wait_for("RUNNING", HANG_LIMIT_S)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once"])
def test_a_coordinator_that_is_away_is_waited_for_beyond_all_time_outs(
    guarantee: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Check coordinators of which no broker knows where they are, such as on a broker that died."""
    with EmbeddedBroker(settings=SETTINGS) as broker:
        topics = Topics(broker.bootstrap_servers, unique("away"))
        write_round(topics, "round 1")
        away = broker.faults.add(
            RequestFault("error", api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE")
        )
        limits = {"request_timeout_ms": 300, "task_timeout_ms": 500}
        with start(topics, tmp_path, guarantee=guarantee, **limits) as running:
            found = "Other brokers answer. Nothing is lost"
            wait_until(lambda: found in caplog.text, what=lambda: caplog.text)
            wait_until(lambda: away.struck > 30, what=lambda: str(away.struck))
            assert running.health().live
            away.remove()
            wait_for_rounds(topics, 1, partitions=PARTITIONS)
            assert running.state != "ERROR"
