"""Test queries of stores over several workers, in Python and over HTTP, on both brokers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.errors import ConfigError, StoreUnavailable
from streams.processes.running import RunningApp
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_reads import StoreRead
from tests.integration.cluster import Topics
from tests.integration.test_uncaught import counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

TOKEN = "a-token-of-the-application"


def start(topics: Topics, directory: Path, **settings: Any) -> RunningApp:
    app = counting(topics, directory, "shutdown_client")
    app.configure(None, query_port=0, query_token=TOKEN, **settings)
    return app.start(handle_signals=False)


def address_of(running: RunningApp) -> str:
    return f"http://127.0.0.1:{running.ports['query_port']}"


def test_each_worker_answers_for_all(topics: Topics, tmp_path: Path) -> None:
    with (
        start(topics, tmp_path / "a") as one,
        start(topics, tmp_path / "b") as other,
        httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        for running in (one, other):
            running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(2_000)
        wait_until(lambda: min(each.metrics()["tasks"] for each in (one, other)) > 0, what="tasks")
        for running in (one, other):
            counts = running.query("counts", timeout=HANG_LIMIT_S)
            wait_until(lambda c=counts: dict(c.all()) == topics.truth, what="all counts")  # type: ignore[misc]
            key, count = next(iter(topics.truth.items()))
            assert counts.get(key) == count
            assert counts.get("no such key") is None
            assert [k for k, _ in counts.range()] == sorted(topics.truth)
            assert [k for k, _ in counts.reverse_range()] == sorted(topics.truth, reverse=True)
            hosts = running.metadata_for_store("counts")
            assert {each.role for each in hosts} == {"active"}
            assert {each.port for each in hosts} == {
                one.ports["query_port"],
                other.ports["query_port"],
            }
            [owner] = running.metadata_for_key("counts", key)
            assert (owner.port, owner.partition) in {(h.port, h.partition) for h in hosts}
            found = client.get(f"{address_of(running)}/stores/counts/{key}")
            assert (found.json()["value"], found.status_code) == (count, 200)
            # The producer of the test has a partitioner of its own, so the owner is not told.
            local = [
                client.get(f"{address_of(each)}/stores/counts/{key}", params={"scope": "local"})
                for each in (one, other)
            ]
            assert [each.json()["value"] for each in local if each.content] == [count]
            assert all(int(each.headers["Millrace-Age-Ms"]) < 60_000 for each in local)
        result = one.query("counts").get_result(key)
        assert result.position
        again = other.query("counts").at_least(result.position)
        assert again.get(key) == count


def test_a_position_is_waited_for_and_one_that_is_never_reached_is_an_error(
    topics: Topics, tmp_path: Path
) -> None:
    with start(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        counts = running.query("counts", timeout=HANG_LIMIT_S)
        topics.load(500)
        wait_until(lambda: dict(counts.all()) == topics.truth, what="all counts")
        position = counts.get_result(next(iter(topics.truth))).position
        partition, offset = next(iter(position.items()))
        late = running.query("counts", timeout=0.3).at_least({partition: offset + 10_000})
        with pytest.raises(StoreUnavailable, match=r"has not taken in .* up to offset"):
            late.get("key-1")
        with pytest.raises(ConfigError, match="a position names elsewhere"):
            counts.at_least({("elsewhere", 0): 1}).get("key-1")


def test_requests_that_are_wrong_are_told_why(topics: Topics, tmp_path: Path) -> None:
    with (
        start(topics, tmp_path) as running,
        httpx.Client(
            headers={"Authorization": f"Bearer {TOKEN}"}, base_url=address_of(running)
        ) as client,
    ):
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(100)
        counts = running.query("counts", timeout=HANG_LIMIT_S)
        wait_until(lambda: dict(counts.all()) == topics.truth, what="all counts")
        assert client.get("/stores", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert [each["name"] for each in client.get("/stores").json()["stores"]] == ["counts"]
        problems = {
            "/stores/cuonts": (404, "there is no store 'cuonts'; there are ['counts']"),
            "/stores/counts/no-such-key": (404, "store 'counts' has no value of this key"),
            "/stores/counts?form=json": (400, "unknown parameter 'form'"),
            "/stores/counts?limit=0": (400, "no number from 1 to 10000"),
            "/stores/counts?limit=-1": (400, "limit='-1' is no number"),
            "/stores/counts?from-ms=5": (400, "is no window store"),
            "/stores/counts/k?as-of-ms=x": (400, "as-of-ms='x' is no number"),
            "/stores/counts/!?format=bytes": (400, "is no key for the serde 'string'"),
            "/stores/counts?at-least=orders:5": (400, "is not TOPIC-PARTITION:OFFSET"),
        }
        for path, (status, detail) in problems.items():
            answer = client.get(path)
            assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), path
        key = next(iter(topics.truth))
        encoded = base64.urlsafe_b64encode(key.encode()).decode()
        row = client.get(f"/stores/counts/{encoded}", params={"format": "bytes"}).json()
        assert base64.b64decode(row["key"]) == key.encode()
        assert int.from_bytes(base64.b64decode(row["value"])) == topics.truth[key]
        page = client.get("/stores/counts", params={"limit": 3})
        assert len(page.text.splitlines()) == 3
        assert page.headers["Millrace-More"] == "1"


def test_the_command_finds_the_workers_and_says_what_is_wrong(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ("--bootstrap-servers", topics.servers)

    def query(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["query", topics.application, *arguments])

    nobody = query("counts", *cluster)
    assert (nobody.exit_code, "answers queries: start workers with" in nobody.stderr) == (2, True)
    with start(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(500)
        counts = running.query("counts", timeout=HANG_LIMIT_S)
        wait_until(lambda: dict(counts.all()) == topics.truth, what="all counts")
        refused = query("counts", *cluster)
        assert (refused.exit_code, "set MILLRACE_QUERY_TOKEN" in refused.stderr) == (2, True)
        monkeypatch.setenv("MILLRACE_QUERY_TOKEN", TOKEN)
        key, count = next(iter(topics.truth.items()))
        found = query("counts", key, *cluster)
        assert (found.exit_code, str(count) in found.stdout, "ms old" in found.stderr) == (
            0,
            True,
            True,
        )
        absent = query("counts", "no/such key", *cluster)
        assert (absent.exit_code, absent.stdout) == (1, "")
        assert "store 'counts' has no value of the key 'no/such key'" in absent.stderr
        listed = query("counts", "--json", *cluster)
        rows = [json.loads(line) for line in listed.stdout.splitlines()]
        assert {row["key"]: row["value"] for row in rows} == topics.truth
        part = query("counts", "--limit", "2", "--reverse", "--json", *cluster)
        assert len(part.stdout.splitlines()) == 2
        assert "there are more rows" in part.stderr
        mistaken = query("cuonts", *cluster)
        assert (mistaken.exit_code, "there is no store 'cuonts'" in mistaken.stderr) == (2, True)
        windows = query("counts", "--from-ms", "5", *cluster)
        assert (windows.exit_code, "is no window store" in windows.stderr) == (2, True)
        port = running.ports["query_port"]
        there = query("counts", key, "--address", f"http://127.0.0.1:{port}", "--json")
        assert json.loads(there.stdout)["value"] == count
    gone = query("counts", key, "--address", f"127.0.0.1:{port}")
    assert (gone.exit_code, "store 'counts': 127.0.0.1:" in gone.stderr) == (2, True)
    wrong = query("counts", "--address", "ftp://127.0.0.1:21")
    assert (wrong.exit_code, "write host:port, or https://host:port" in wrong.stderr) == (2, True)


def test_a_worker_that_dies_is_an_error_and_no_absent_key(topics: Topics, tmp_path: Path) -> None:
    with start(topics, tmp_path / "a") as one:
        one.wait_for("RUNNING", HANG_LIMIT_S)
        with start(topics, tmp_path / "b") as other:
            topics.load(500)
            counts = one.query("counts", timeout=HANG_LIMIT_S)
            wait_until(lambda: other.metrics()["tasks"] > 0, what="a task of the other")
            wait_until(lambda: dict(counts.all()) == topics.truth, what="all counts")
        # It has left: until its tasks run here, each look-up finds the key or is an error.
        quick = one.query("counts", timeout=0.2)
        for key, count in topics.truth.items():
            try:
                assert quick.get(key) == count
            except StoreUnavailable:
                continue
        wait_until(lambda: dict(counts.all()) == topics.truth, what="all counts again")


def test_standbys_answer_within_bounds_and_say_how_far_behind_they_are(
    topics: Topics, tmp_path: Path
) -> None:
    with (
        start(topics, tmp_path / "a", num_standby_replicas=1) as one,
        start(topics, tmp_path / "b", num_standby_replicas=1) as other,
        httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        wait_until(
            lambda: min(each.metrics()["standby_tasks"] for each in (one, other)) > 0,
            what="a standby task of each",
        )
        topics.load(2_000)
        strict = one.query("counts", timeout=HANG_LIMIT_S)
        wait_until(lambda: dict(strict.all()) == topics.truth, what="all counts")
        position = {
            p: o for key in topics.truth for p, o in strict.get_result(key).position.items()
        }
        bounds = StaleBounds(max_lag=0, max_age=5.0)
        for running in (one, other):
            stale = running.query("counts", timeout=HANG_LIMIT_S, stale_ok=bounds)
            assert dict(stale.at_least(position).all()) == topics.truth
            lags = {
                (each.role, each.lag)
                for each in running.metadata_for_store("counts")
                if each.address == running._worker.endpoint
            }
            assert lags == {("active", None), ("standby", 0)}
            [listed] = client.get(f"{address_of(running)}/stores").json()["stores"]
            own = f"127.0.0.1:{running.ports['query_port']}"
            standbys = [each for each in listed["hosts"] if each["role"] == "standby"]
            # A worker knows the lags of its own standbys.
            assert {(each["address"] == own, each.get("lag")) for each in standbys} == {
                (True, 0),
                (False, None),
            }
            local = client.get(
                f"{address_of(running)}/stores/counts",
                params={"scope": "local", "stale-ok-lag": "0", "stale-ok-age": "5000"},
            )
            assert len(local.text.splitlines()) == len(topics.truth)
            assert local.headers["Millrace-Partitions"] == "0,1,2"
            assert local.headers["Millrace-Lag"] == "0"
            assert int(local.headers["Millrace-Age-Ms"]) <= 5_000
        with pytest.raises(StoreUnavailable, match="s old, and 0 s are allowed"):
            one.local_stores.read("counts", StoreRead(), stale_ok=StaleBounds(max_age=0))
