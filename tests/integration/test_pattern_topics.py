"""Test topics that match a pattern: they appear and vanish under load while workers are killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streams import App, StreamsError, serdes
from streams import topics as topic_patterns
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.integration.pattern_load import LOOK_MS, PatternLoad, let_topics_come_and_go
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S
from tests.sampling import draw_seed

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_topics_of_a_pattern_appear_and_vanish_under_load_and_kills(
    topics: Topics, new_worker: Callable[..., Worker], guarantee: str
) -> None:
    """Check each guarantee; `exactly_once` has a producer for each task.

    At least once a record that was processed before a kill, and not committed, counts twice.
    """
    exactly = guarantee != "at_least_once"
    seed = draw_seed("topics of a pattern")
    print(f"{seed=}")
    workers = [
        new_worker(kind="pattern", state=f"state-{n}", guarantee=guarantee) for n in range(2)
    ]
    let_topics_come_and_go(PatternLoad(topics), workers, Random(seed), exactly=exactly)


def start_pattern(topics: Topics, state: Path, **settings: Any) -> Any:
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind="pattern",
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        **{"metadata_max_age_ms": LOOK_MS, **settings},
    ).start()


def test_a_topic_that_is_made_again_at_once_is_read_from_its_first_record(
    topics: Topics, tmp_path: Path
) -> None:
    load = PatternLoad(topics)
    topics.create(load.name("stays"), load.name("again"))
    with start_pattern(topics, tmp_path) as running:
        load.write("stays", 50)
        load.write("again", 100)
        load.wait_until_counted()
        topics.make_again(load.name("again"))
        load.write("again", 30)
        load.write("stays", 30)
        load.wait_until_counted()
        assert running.state != "ERROR"


def test_the_only_topic_of_a_pattern_may_vanish_and_come_back(
    topics: Topics, tmp_path: Path
) -> None:
    load = PatternLoad(topics)
    with start_pattern(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)  # with no task: nothing matches
        topics.create(load.name("only"))
        load.write("only", 100)
        load.wait_until_counted()
        topics.delete(load.name("only"))
        time.sleep(LOOK_MS / 1_000)
        topics.create(load.name("only"))
        load.write("only", 50)
        load.wait_until_counted()


def test_a_topic_that_two_patterns_match_ends_the_application_by_name(
    topics: Topics, tmp_path: Path
) -> None:
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        metadata_max_age_ms=LOOK_MS,
    )
    for expression in (f"{topics.source}-a.*", f"{topics.source}-.*b"):
        matching = topic_patterns.matching(expression)
        app.stream(matching, key=serdes.string, value=serdes.string).to(topics.target)
    running = app.start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    topics.create(f"{topics.source}-ab")
    with pytest.raises(StreamsError, match=f"{topics.source}-ab.* matches .* and"):
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with pytest.raises(StreamsError):
        running.close()


def test_a_start_without_a_topic_that_matches_waits_for_one(topics: Topics, tmp_path: Path) -> None:
    load = PatternLoad(topics)
    with start_pattern(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.create(load.name("first"))
        load.write("first", 40)
        load.wait_until_counted()
        assert len(running._list_tasks()) == 2 * PARTITIONS
