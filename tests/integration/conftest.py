"""Provide the integration tests with topics of their own, and with workers that are ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.integration.cluster import Topics, Worker


@pytest.fixture
def topics(broker: Broker, unique: Callable[[str], str]) -> Topics:
    return Topics(broker.bootstrap_servers, unique("app"))


@pytest.fixture
def new_worker(topics: Topics, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Return a function that makes workers on one state directory."""
    made: list[Worker] = []

    def make(
        kind: str = "count",
        guarantee: str = "exactly_once_v2",
        state: str = "state",
        session_timeout_ms: int = 10_000,
    ) -> Worker:
        made.append(
            Worker(
                topics,
                tmp_path / state,
                kind=kind,
                guarantee=guarantee,
                session_timeout_ms=session_timeout_ms,
            )
        )
        return made[-1]

    yield make
    for worker in made:
        worker.kill()
        worker.close()
