"""Test what a function that runs for long keeps others from: stopping, and look-ups."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from streams.queries import http_server
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
