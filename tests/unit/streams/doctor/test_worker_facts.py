"""Test that workers are asked at ports that the user names, beside those that are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streams.common.host import SystemHost
from streams.doctor.worker_facts import sample_workers
from streams.errors import StreamsError
from streams.monitoring.http_endpoint import HttpEndpoint, HttpResponse


def test_a_worker_at_a_given_port_is_asked(tmp_path: Path) -> None:
    report = json.dumps({"why": ["thread 0 hangs"]}).encode()
    answers = {
        "/health": lambda: HttpResponse(503, "application/json", report),
        "/metrics": lambda: HttpResponse(200, "text/plain", b"millrace_thread_records_total 5\n"),
    }
    endpoint = HttpEndpoint("health_port", "127.0.0.1", 0, answers, SystemHost())
    try:
        found = sample_workers(tmp_path, "words", [endpoint.port])
    finally:
        endpoint.close()
    address = f"127.0.0.1:{endpoint.port}"
    assert found.healths[address][-1]["why"] == ["thread 0 hangs"]
    assert list(found.after) == [address]


def test_without_a_worker_and_a_port_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match="no worker runs on this machine"):
        sample_workers(tmp_path, "words")
