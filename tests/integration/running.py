"""Start the application that counts in the process of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streams.processes.running import RunningApp
from tests.integration.cluster import Topics
from tests.integration.worker import build


def start_counting(topics: Topics, state: Path, **settings: Any) -> RunningApp:
    """Start a worker that counts the records of each key, with more settings if given."""
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=state,
        heartbeat_interval_ms=200,
        session_timeout_ms=15_000,
        commit_interval_ms=50,
        **settings,
    ).start()
