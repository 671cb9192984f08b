"""Provide workers that leave the group when their test ends, so that no heartbeat outlives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.streams.membership.fakes import Worker


@pytest.fixture
def new_worker() -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def make(**given: Any) -> Worker:
        workers.append(Worker(**given))
        return workers[-1]

    yield make
    for worker in workers:
        worker.member.leave_group()


@pytest.fixture
def worker(new_worker: Callable[..., Worker]) -> Worker:
    return new_worker()
