"""Test what a function that runs for long keeps others from: stopping, and look-ups."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from streams.errors import StoreUnavailable
from streams.queries import http_server
from streams.queries.endpoint_client import EndpointClient
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_calls import StoreCall
from streams.queries.store_hosts import StoreHost
from streams.queries.store_reads import StoreRead
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.endless_function import ask_in_vain
from tests.unit.streams.queries.served import TOKEN, FakeReads, create_reads, serve

_LIMIT_S = 20.0


class LongFunctions:
    """Holds stores whose functions run until the end of the block, and counts those that began."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.count = 0
        self.end = threading.Event()
        stores = create_reads()
        self.reads = FakeReads(stores.specs, stores.rows, before_read=self._run_call)

    def _run_call(self, read: object) -> None:
        if getattr(read, "call", None) is not None:
            self.count += 1
            self.begun.release()
            assert self.end.wait(_LIMIT_S)


@contextmanager
def run_functions() -> Iterator[LongFunctions]:
    functions = LongFunctions()
    try:
        yield functions
    finally:
        functions.end.set()


def test_a_worker_stops_without_a_traceback_while_a_function_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "SHUTDOWN_S", 1)
    caplog.set_level(logging.INFO)
    with ThreadPoolExecutor() as threads, run_functions() as functions:
        with serve(functions.reads) as (host, port):
            url = f"http://{host}:{port}/queries/largest"
            headers = {"Authorization": f"Bearer {TOKEN}"}
            asked = threads.submit(httpx.get, url, headers=headers, timeout=_LIMIT_S)
            assert functions.begun.acquire(timeout=_LIMIT_S)
        assert isinstance(asked.exception(_LIMIT_S), httpx.HTTPError)
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


class OtherWorker:
    """Stands in for a worker without tasks, which knows one that has them all."""

    def __init__(self, reads: FakeReads, host: str, port: int) -> None:
        self.find_store = reads.find_store
        self._host = StoreHost(host, port, 0, "active", 0.0)

    def count_partitions(self, name: str) -> int:
        return 1

    def list_own_partitions(self, name: str, *, with_standbys: bool) -> set[int]:
        return set()

    def list_hosts(self, name: str) -> list[StoreHost]:
        return [self._host]


def test_a_function_that_takes_too_long_is_called_once() -> None:
    with run_functions() as functions, serve(functions.reads) as address:
        local: Any = OtherWorker(functions.reads, *address)
        reads = RoutedReads(local, lambda: EndpointClient(TOKEN), "127.0.0.1:1")
        call = StoreCall(functions.reads.find_query("largest"), {})
        with pytest.raises(StoreUnavailable, match=r"does not answer|has not ended"):
            reads.read("counts", StoreRead(call=call), at_least={}, timeout_s=1.0)
        reads.close()
        functions.end.set()
    assert functions.count == 1


@pytest.mark.parametrize("scope", ["cluster", "local"])
def test_look_ups_go_on_beside_functions_that_take_long(scope: str) -> None:
    with (
        ThreadPoolExecutor(16) as threads,
        run_functions() as functions,
        serve(functions.reads) as (host, port),
    ):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        base = f"http://{host}:{port}"

        def ask(path: str, wait_ms: int) -> httpx.Response:
            parameters = {"scope": scope, "wait-ms": str(wait_ms)}
            return httpx.get(base + path, params=parameters, headers=headers, timeout=_LIMIT_S)

        asked = [threads.submit(ask, "/queries/largest", 20_000) for _ in range(4)]
        for _ in range(4):
            assert functions.begun.acquire(timeout=_LIMIT_S)
        refused = [threads.submit(ask, "/queries/largest", 500) for _ in range(12)]
        for each in refused:
            assert each.result(_LIMIT_S).status_code == 503
            assert "runs 4 functions of queries" in each.result().json()["detail"]
            assert each.result().json()["detail"].count("'largest' for") == 4
        assert ask("/stores/counts/a", 1_000).status_code == 200
        functions.end.set()
        assert [each.result(_LIMIT_S).status_code for each in asked].count(200) == 4


@pytest.mark.parametrize("scope", ["cluster", "local"])
def test_who_asks_for_a_function_that_does_not_end_is_told_in_time(
    scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    measurements = QueryMeasurements()
    with (
        run_functions() as functions,
        serve(functions.reads, measurements=measurements) as (host, port),
    ):
        response = httpx.get(
            f"http://{host}:{port}/queries/largest",
            params={"scope": scope, "wait-ms": "300"},
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=_LIMIT_S,
        )
        assert response.status_code == 503
        assert "query 'largest' has not ended within 0.3 s" in response.json()["detail"]
        assert measurements.functions_overdue["largest"] == 1
        functions.end.set()
        wait_until(lambda: not measurements.functions_overdue["largest"], what="it has ended")
    [told] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "'largest'" in told


def test_a_function_that_never_ends_keeps_no_process_from_ending() -> None:
    code = f"from {ask_in_vain.__module__} import ask_in_vain; ask_in_vain()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=True,
    )
    told, state = ended.stdout.splitlines()
    assert told.startswith("503 the function of query 'largest' has not ended within 0.1 s")
    assert state == "runs on"
