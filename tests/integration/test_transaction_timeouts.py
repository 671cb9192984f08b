"""Test that a worker whose function outlasts the transaction says so, and loses nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streams import App, serdes
from streams.symptoms.lookup import find_by_message
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="test")]


def test_a_function_that_outlasts_the_transaction_is_told_as_that(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def look_up(line: str) -> str:
        seen.append(line)
        if len(seen) == 30:  # the results of others are in the transaction then
            time.sleep(13)  # Kafka looks for expired transactions each ten seconds
        return line

    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        commit_interval_ms=50,
        transaction_timeout_ms=1_000,
    )
    lines = app.stream(topics.source, key=serdes.string, value=serdes.string)
    lines.map_values(look_up).to(topics.target)
    topics.load(60)
    with app.start(handle_signals=False) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(lambda: len(list(topics.committed())) >= 60, what="all results")
    assert len(list(topics.final())) == 60
    told = [each for each in caplog.messages if "starts over" in each]
    assert any("longer than transaction_timeout_ms=1000" in each for each in told), told
    assert {each.code for each in map(find_by_message, told) if each} == {"MR-012"}
