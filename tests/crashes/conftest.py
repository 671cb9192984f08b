"""Provide each trial by crash with topics of its own and workers that are ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.crashes.trial import CrashWorker, Trial


@pytest.fixture
def trial(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Trial]:
    made = Trial(broker.bootstrap_servers, unique("crash"), tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def new_worker() -> Iterator[Callable[..., CrashWorker]]:
    made: list[CrashWorker] = []

    def make(*arguments: object, **more: object) -> CrashWorker:
        made.append(CrashWorker(*arguments, **more))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for worker in made:
        worker.kill()
        worker.close()
