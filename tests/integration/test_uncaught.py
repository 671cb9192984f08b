"""Test the effect of an error that ends a thread on the worker and on the application."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import App, StreamsError, serdes
from streams.errors import ApplicationShutdown
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def counting(topics: Topics, state: Path, handler: Any, then: Callable[[str], str] = str) -> App:
    """Build an application that counts values by key; each goes through `then` first."""
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        heartbeat_interval_ms=200,
        session_timeout_ms=UNREACHED_MS,
        uncaught_exception_handler=handler,
    )
    stream = app.stream(topics.source, key=serdes.string, value=serdes.string)
    counts = stream.map_values(then).group_by_key().count(store="counts")
    counts.to_stream().to(topics.target)
    return app


def failing(times: int) -> Callable[[str], str]:
    """Return a function that fails so many times, at the same record."""
    left = times

    def function(value: str) -> str:
        nonlocal left
        if value.endswith(" 7") and left:
            left -= 1
            raise RuntimeError("told to")
        return value

    return function


def fail(value: str) -> str:
    raise RuntimeError("told to")


def test_a_thread_that_fails_is_replaced_and_its_place_in_the_group_is_taken_over(
    topics: Topics, tmp_path: Path
) -> None:
    errors: list[Exception] = []

    def handler(error: Exception) -> str:
        errors.append(error)
        return "replace_thread"

    topics.load(100)
    with counting(topics, tmp_path, handler, failing(times=2)).start() as running:
        assert topics.wait_for_counts(100) == topics.truth
        metrics = running.metrics()
        assert running.state == "RUNNING"
    assert metrics["replaced_threads"] == 2
    assert metrics["commits"] > 0
    assert len(errors) == 2
    assert all("told to" in str(error) for error in errors)


def test_a_worker_that_is_closed_while_a_thread_waits_for_its_replacement_leaves_the_group(
    topics: Topics, tmp_path: Path
) -> None:
    topics.load(10)
    with counting(topics, tmp_path / "failing", "replace_thread", failing(times=99)).start() as it:
        wait_until(lambda: it.metrics()["replaced_threads"] >= 2, what="two replacements")
        wait_until(lambda: not it.health().healthy, what="the wait to be seen")
        health = it.health()
        [why] = health.why
        assert re.match(r"thread 0 has been waiting to be replaced for \d\.\d s, after: ", why)
        assert "told to" in why
        assert (health.live, health.threads[0].doing) == (True, "waiting to be replaced")
    with counting(topics, tmp_path / "other", "shutdown_client").start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert topics.wait_for_counts(10) == topics.truth


def test_a_function_that_calls_exit_ends_the_worker_with_an_error(
    topics: Topics, tmp_path: Path
) -> None:
    topics.load(10)
    running = counting(topics, tmp_path, "shutdown_client", lambda value: sys.exit(3)).start()
    running.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(StreamsError, match=r"SystemExit\(3\) in <lambda>, .*test_uncaught.py"):
        running.close()


def test_an_error_may_shut_the_whole_application_down(topics: Topics, tmp_path: Path) -> None:
    calm = counting(topics, tmp_path / "calm", "replace_thread").start()
    calm.wait_for("RUNNING", HANG_LIMIT_S)
    failed = counting(topics, tmp_path / "failing", "shutdown_application", fail).start()
    wait_until(lambda: failed.metrics()["tasks"] > 0, what="a task to move")
    for _ in range(20):
        topics.load(50)
    calm.wait_for("ERROR", HANG_LIMIT_S)
    failed.wait_for("ERROR", HANG_LIMIT_S)
    with pytest.raises(ApplicationShutdown, match=r"shutdown asked for by .*told to"):
        calm.close()
    with pytest.raises(StreamsError, match="told to"):
        failed.close()
    with counting(topics, tmp_path / "calm", "shutdown_client").start():
        assert topics.wait_for_counts(topics.loaded) == topics.truth
