from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from streams.runtime.threads.commit import CommitStep
from tests.integration.cluster import Topics, Worker, stored_counts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "testing" / "test_with_container.py"


@pytest.fixture(scope="module")
def kafka(environment: Mapping[str, str]) -> Iterator[str]:
    """Start Kafka in a container for the module's tests and return its address."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        # testcontainers reads its settings when it is imported.
        from testcontainers.community.kafka import KafkaContainer

        container = KafkaContainer(environment["KAFKA_IMAGE"]).with_kraft()
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        try:
            container.start(timeout=120)
            yield container.get_bootstrap_server()
        finally:
            container.stop()
            container.get_docker_client().client.close()


def test_a_word_count_that_is_killed_counts_every_word_once(
    kafka: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topics = Topics(kafka, unique("words"))
    worker = Worker(
        topics,
        tmp_path,
        kind="words",
        guarantee="exactly_once_v2",
        session_timeout_ms=10_000,
    )
    try:
        for step in (
            CommitStep.PRODUCED,
            CommitStep.COMMITTED,
        ):  # kill -9 there, in the middle of a commit
            worker.start(kill_at=step.name, kill_commit=3)
            worker.load_until_killed(topics)
        topics.load(1_000)
        worker.start()
        topics.wait_for_counts(2 * topics.loaded)
        worker.finish()
    finally:
        worker.kill()
        worker.close()
    truth = Counter({str(number): 1 for number in range(topics.loaded)})
    truth["value"] = topics.loaded
    assert topics.counts() == truth
    assert stored_counts(tmp_path, topics.application) == truth
    seen = [(pair.key, pair.value) for pair in topics.committed()]
    assert len(seen) == len(set(seen)), "a count was written twice"


def test_the_example_passes_as_it_stands(environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", str(EXAMPLE)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_example_of_the_page_is_skipped_where_no_engine_answers(tmp_path: Path) -> None:
    nobody = {"DOCKER_HOST": f"unix://{tmp_path}/docker.sock", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", str(EXAMPLE)],
        env={**os.environ, **nobody},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no container engine answers: " in done.stdout
    assert done.stderr == ""
