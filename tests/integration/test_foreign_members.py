"""Test a worker whose group has plain consumers, of each protocol, and the other way round."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from streams import App, serdes
from streams.errors import StreamsError
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


@contextmanager
def plain_consumer(topics: Topics, protocol: str) -> Iterator[list[str]]:
    """Run a consumer in the application's group; yield what its polls have raised."""
    settings = {"bootstrap.servers": topics.servers, "group.id": topics.application}
    consumer = Consumer({**settings, "group.protocol": protocol})
    joined = threading.Event()
    consumer.subscribe([topics.source], on_assign=lambda *_: joined.set())
    errors: list[str] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error():
                errors.append(message.error().name())

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        wait_until(lambda: joined.is_set() or bool(errors), what="the consumer to join")
        yield errors
    finally:
        stop.set()
        thread.join(HANG_LIMIT_S)
        consumer.close()


def make_app(topics: Topics, state_dir: Path) -> App:
    app = App(topics.application, bootstrap_servers=topics.servers, state_dir=state_dir)
    app.stream(topics.source, key=serdes.string, value=serdes.string).to(topics.target)
    return app


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_worker_says_that_its_group_has_members_of_others(
    topics: Topics, tmp_path: Path, protocol: str
) -> None:
    with plain_consumer(topics, protocol):
        running = make_app(topics, tmp_path).start()
        wait_until(lambda: str(running.state) == "ERROR", what="the worker to end")
        with pytest.raises(StreamsError, match=r"not of this application.*choose") as raised:
            running.close()
        assert ("which speak 'consumer'" in str(raised.value)) == (protocol == "classic")
    with make_app(topics, tmp_path).start() as running:
        running.wait_for("RUNNING")


def test_a_plain_consumer_does_not_disturb_the_workers_of_a_group(
    topics: Topics, tmp_path: Path
) -> None:
    with make_app(topics, tmp_path).start() as running:
        running.wait_for("RUNNING")
        with plain_consumer(topics, "classic") as errors:
            assert errors[0] == "INCONSISTENT_GROUP_PROTOCOL"
        assert str(running.state) == "RUNNING"
