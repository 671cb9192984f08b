"""Test the word count on Apache Kafka in a container.

    KAFKA_IMAGE=confluentinc/cp-kafka:8.1.0 pytest examples/testing/test_with_container.py

It needs `testcontainers[kafka]` and `packaging`, and a container engine (Docker, Podman) that
answers; without one it is skipped.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from docker.errors import DockerException
from testcontainers.community.kafka import KafkaContainer

from examples.testing.words import produce, read_counts
from examples.word_count import app


def create_container(image: str) -> KafkaContainer:
    """Create a container of a Kafka image, or skip the test if no container engine answers."""
    with warnings.catch_warnings():
        # docker-py leaves the socket open when no engine answers; gc.collect() below closes it.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return KafkaContainer(image).with_kraft()  # Kafka 4 has no ZooKeeper
        except DockerException as error:
            reason = str(error)
        gc.collect()
    pytest.skip(f"no container engine answers: {reason}")


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Start a Kafka for the session, and yield its address."""
    image = os.environ.get("KAFKA_IMAGE", "confluentinc/cp-kafka:8.1.0")
    container = create_container(image)
    # With one broker the topic of transactions can have one replica only.
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    container.start(timeout=120)  # `with KafkaContainer(...)` would wait for 30 s at most.
    try:
        yield container.get_bootstrap_server()
    finally:
        container.stop()
        container.get_docker_client().client.close()


def test_words_are_counted(kafka: str, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    for answer in admin.create_topics(
        [NewTopic("lines", 2), NewTopic("counts-by-word", 2)]
    ).values():
        answer.result(30)
    app.configure(None, bootstrap_servers=kafka, state_dir=tmp_path)
    produce(kafka, ["to be or not", "to be"])
    with app.start() as running:
        running.wait_for("RUNNING")
        assert read_counts(kafka, words=6) == {"to": 2, "be": 2, "or": 1, "not": 1}
