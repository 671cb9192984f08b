"""Test that the units and manifests of docs/deployment.md name settings and options that exist."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import typer.main

from streams.commands.cli import cli
from streams.settings.config import StreamsConfig

PAGE = (Path(__file__).parents[3] / "docs" / "deployment.md").read_text()
PROBE = re.compile(r"command: \[python, -c, (\"[^\n]+\")\]")
STOP_S = StreamsConfig.model_fields["shutdown_timeout_ms"].default / 1_000 + 15


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_every_variable_is_a_setting() -> None:
    named = set(re.findall(r"MILLRACE_([A-Z_]+[A-Z])", PAGE))
    assert len(named) == 4
    assert {name.lower() for name in named} <= set(StreamsConfig.model_fields)


def test_every_option_of_millrace_run_exists() -> None:
    options = {
        option
        for parameter in typer.main.get_group(cli).commands["run"].params
        for option in parameter.opts
    }
    lines = re.findall(r"millrace run words:app(.*)", PAGE)
    assert set(re.findall(r"--[a-z-]+", " ".join(lines))) == {"--workers"} <= options


def test_the_unit_gives_a_worker_time_to_stop() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read_string(block("ini"))
    service = unit["Service"]
    assert int(service["TimeoutStopSec"]) >= STOP_S
    assert service["KillMode"] == "mixed"


def test_containers_give_a_worker_time_to_stop() -> None:
    assert int(re.findall(r"--stop-timeout (\d+)", PAGE)[0]) >= STOP_S
    assert int(re.findall(r"terminationGracePeriodSeconds: (\d+)", PAGE)[0]) >= STOP_S


@contextmanager
def endpoint(status: int) -> Iterator[int]:
    """Answer each request with `status` on a free port, and yield the port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Keep the test's output free of requests."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "passes"), [(200, True), (503, False)])
def test_a_probe_passes_as_the_endpoint_answers(status: int, passes: bool) -> None:
    probes = [json.loads(text) for text in PROBE.findall(block("yaml"))]
    assert [re.findall(r":8080(/\w+)", each) for each in probes] == [["/live"], ["/health"]]
    with endpoint(status) as port:
        for probe in probes:
            code = probe.replace(":8080", f":{port}")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
            assert (done.returncode == 0) == passes
