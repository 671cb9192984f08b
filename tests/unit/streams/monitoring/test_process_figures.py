"""Test that /metrics tells what the process takes, and that the page names each such figure."""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from streams.common.host import SystemHost
from streams.monitoring.health import Health
from streams.monitoring.metrics import WorkerCollector
from streams.monitoring.process_figures import render_process_figures
from streams.processes.endpoints import start_endpoints
from streams.settings.config import load_config

PAGE = Path(__file__).parents[4] / "docs" / "operations.md"


def read_figures() -> dict[str, float]:
    """Return the samples of this process by name and labels."""
    lines = render_process_figures().decode().splitlines()
    samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


@pytest.mark.skipif(sys.platform != "linux", reason="they are read from /proc")
def test_open_files_and_memory_are_those_of_this_process() -> None:
    before = read_figures()
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
    while_open = read_figures()
    for each in files:
        os.close(each)
    # Other threads of this process open and close some meanwhile.
    opened = while_open["process_open_fds"] - before["process_open_fds"]
    assert opened == pytest.approx(100, abs=50)
    assert before["process_resident_memory_bytes"] > 1_000_000
    assert while_open["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"] > 0


def test_a_garbage_collection_is_counted_by_generation() -> None:
    before = read_figures()
    gc.collect()
    name = 'python_gc_collections_total{generation="2"}'
    assert read_figures()[name] >= before[name] + 1


def test_a_worker_tells_them_with_its_own_figures() -> None:
    health = Health("RUNNING", True, True, (), [])
    [(_, endpoint)] = start_endpoints(
        load_config(metrics_port=0),
        0,
        SystemHost(),
        report_health=lambda: health,
        collector=WorkerCollector(lambda: health, dict, lambda: 0),
    )
    try:
        with urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=10) as answer:
            text = answer.read()
    finally:
        endpoint.close()
    assert b"millrace_worker_live 1.0\n" in text
    assert b'python_gc_collections_total{generation="0"}' in text


@pytest.mark.skipif(sys.platform != "linux", reason="they are read from /proc")
def test_the_page_names_each_figure_of_the_process_and_no_other() -> None:
    named = set(re.findall(r"`((?:process|python_gc)_\w+)`", PAGE.read_text()))
    assert named == {name.partition("{")[0] for name in read_figures()}
