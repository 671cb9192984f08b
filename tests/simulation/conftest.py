"""Restore what a history changes in the process, and keep the seeds that show planted bugs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.simulation.planted_seeds import PlantedSeeds, read_seeds, write_seeds

FindBug = Callable[[int, Callable[[int], bool]], int | None]


@pytest.fixture(autouse=True)
def _the_logger_s_level_stays() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in ("coordinator", "streams")}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(name="planted_seeds", scope="session")
def _planted_seeds(request: pytest.FixtureRequest) -> Iterator[PlantedSeeds]:
    seeds = read_seeds(request.config.getoption("--keep-seeds"))
    yield seeds
    if seeds.keeps:
        write_seeds(seeds)


@pytest.fixture
def find_bug(planted_seeds: PlantedSeeds, request: pytest.FixtureRequest) -> FindBug:
    """Return a function that finds a seed, of so many, whose history shows the test's bug."""
    return lambda count, shows: planted_seeds.find(request.node.name, count, shows)
