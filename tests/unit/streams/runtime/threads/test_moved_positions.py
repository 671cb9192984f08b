"""Test that positions are committed of which no record was processed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes
from streams.common.topic_partitions import Partition
from tests.unit.streams.runtime.world import World, build_mapping_topology

INPUT = Partition("in", 0)
GUARANTEES = ["exactly_once_v2", "exactly_once", "at_least_once"]


def build_copying_app(policy: str, guarantee: str) -> App:
    settings: dict[str, Any] = {"processing_guarantee": guarantee}
    app = App("a", auto_offset_reset=policy, **settings)
    app.stream("in", key=serdes.string, value=serdes.string).to("out")
    return app


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_end_that_latest_chose_is_committed_before_a_record_is_polled(
    tmp_path: Path, guarantee: str
) -> None:
    world = World(
        build_mapping_topology(str.upper),
        tmp_path,
        guarantee=guarantee,
        commit_every_ms=3_600_000,
        auto_offset_reset="latest",
    )
    world.load("before", partition=0)
    world.run_until(lambda: INPUT in world.kafka.committed_offsets)
    assert world.kafka.committed_offsets[INPUT].offset == 1
    assert world.loop.counters.records == 0


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("policy", ["latest", "by_duration:PT1H"])
def test_what_comes_while_nothing_runs_is_read_though_nothing_came_before(
    policy: str, guarantee: str
) -> None:
    with TopologyTestDriver(build_copying_app(policy, guarantee)) as driver:
        driver.crash()
        driver.topic("in").pipe("k", "meanwhile")
        driver.advance_wall_clock(7_200_000)
        driver.restart()
        assert driver.topic("out").read_values() == ["meanwhile"]


def test_where_an_idle_input_begins_is_committed_within_seconds(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, commit_every_ms=100)
    began_at_s = world.clock()
    world.run_until(lambda: INPUT in world.kafka.committed_offsets)
    assert 1 < world.clock() - began_at_s < 10


def test_an_idle_application_commits_nothing_more(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, commit_every_ms=100)
    began_at_s = world.clock()
    world.run_until(lambda: world.clock() - began_at_s > 60)
    assert world.loop.counters.commits == 1
