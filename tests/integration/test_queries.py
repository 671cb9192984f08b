"""Test the stores of a running worker, read from other threads while it processes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streams.errors import ConfigError, StoreUnavailable
from tests.integration.cluster import KEYS, Topics
from tests.integration.test_uncaught import counting
from tests.processes import HANG_LIMIT_S, wait_until


def test_counts_are_read_while_they_are_counted(topics: Topics, tmp_path: Path) -> None:
    with counting(topics, tmp_path, "shutdown_client").start() as running:
        with pytest.raises(ConfigError, match="there is no store 'count'"):
            running.store("count")
        counts = running.store("counts")
        running.wait_for("RUNNING", HANG_LIMIT_S)
        over, failures = threading.Event(), []

        def read() -> None:
            last: dict[str, int] = {}
            while not over.is_set():
                now = dict(counts.all())
                if any(now.get(key, 0) < count for key, count in last.items()):
                    failures.append((last, now))
                last = now

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _ in range(5):
            topics.load(2_000)
        try:
            wait_until(
                lambda: sum(count for _, count in counts.all()) == topics.loaded,
                what="all records to be counted",
            )
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert not failures
        assert dict(counts.all()) == topics.truth
        assert counts.get("key-7") == topics.truth["key-7"]
        assert counts.approximate_count() >= KEYS
    with pytest.raises(StoreUnavailable):
        counts.get("key-7")
