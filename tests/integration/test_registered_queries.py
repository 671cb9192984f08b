"""Test that functions which are registered as queries run at the workers that have the store."""

from __future__ import annotations

import heapq
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import httpx
import pytest

from streams import ReadOnlyKeyValueStore
from streams.errors import ConfigError, QueryFailed
from streams.processes.running import RunningApp
from streams.queries.stale_bounds import StaleBounds
from tests.integration.cluster import Topics
from tests.integration.test_uncaught import counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")


def find_top(rows: Any, count: int) -> list[tuple[str, int]]:
    return heapq.nlargest(count, rows, key=itemgetter(1, 0))


def start(topics: Topics, directory: Path, called: list[str]) -> RunningApp:
    app = counting(topics, directory, "shutdown_client")
    app.configure(None, query_port=0)

    @app.register_query(
        "top", "counts", merge=lambda parts, count=3: find_top(chain(*parts), count)
    )
    def find_top_of_task(
        counts: ReadOnlyKeyValueStore[str, int], count: int = 3
    ) -> list[tuple[str, int]]:
        called.append(directory.name)
        return find_top(counts.all(), count)

    @app.register_query("value", "counts")
    def find_value(counts: ReadOnlyKeyValueStore[str, int], key: str) -> int | None:
        return counts.get(key)

    @app.register_query("broken", "counts")
    def fail(counts: ReadOnlyKeyValueStore[str, int]) -> int:
        raise LookupError("told to")

    return app.start(handle_signals=False)


def test_a_registered_query_runs_at_all_owners_and_is_merged(
    topics: Topics, tmp_path: Path
) -> None:
    called: list[str] = []
    with start(topics, tmp_path / "a", called) as one, start(topics, tmp_path / "b", called) as two:
        for running in (one, two):
            running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(2_000)
        wait_until(lambda: min(each.metrics()["tasks"] for each in (one, two)) > 0, what="tasks")
        for running in (one, two):
            counts = running.query("counts", timeout=HANG_LIMIT_S)
            wait_until(lambda c=counts: dict(c.all()) == topics.truth, what="all counts")  # type: ignore[misc]
            called.clear()
            expected = [list(row) for row in find_top(topics.truth.items(), 5)]
            assert counts.run_query("top", count=5) == expected
            assert set(called) == {"a", "b"}
            url = f"http://127.0.0.1:{running.ports['query_port']}/queries"
            found = httpx.get(f"{url}/top", params={"arguments": '{"count":5}'})
            assert (found.status_code, found.json()) == (200, expected)
            key, count = next(iter(topics.truth.items()))
            values = counts.run_query("value", key=key)
            assert sorted(values, key=lambda each: each is None) == [count] + [None] * (
                len(values) - 1
            )
            with pytest.raises(QueryFailed, match="LookupError: told to"):
                counts.run_query("broken")
            assert httpx.get(f"{url}/broken").status_code == 500
            with pytest.raises(ConfigError, match="unexpected keyword argument 'number'"):
                counts.run_query("top", number=5)
            with pytest.raises(ConfigError, match="no query 'bottom'; there are"):
                counts.run_query("bottom")
            with pytest.raises(ConfigError, match="standby tasks run no registered queries"):
                running.query("counts", stale_ok=StaleBounds()).run_query("top")
        result = one.query("counts").run_query_result("top")
        assert two.query("counts").at_least(result.position).run_query("top") == result.value
