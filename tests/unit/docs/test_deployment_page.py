"""Test that the units and manifests of docs/deployment.md name settings and options that exist."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import typer.main

from streams.commands.root import cli
from streams.settings.config import StreamsConfig
from tests.unit.docs.page_examples import find_blocks

PAGE = (Path(__file__).parents[3] / "docs" / "deployment.md").read_text()
STOP_S = StreamsConfig.model_fields["shutdown_timeout_ms"].default / 1_000 + 15


def block(language: str) -> str:
    [found] = find_blocks(PAGE, language)
    return found


def test_every_variable_is_a_setting() -> None:
    named = set(re.findall(r"MILLRACE_([A-Z_]+[A-Z])", PAGE))
    assert len(named) == 6
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


def test_the_probes_ask_the_endpoints_of_the_health_port() -> None:
    manifest = block("yaml")
    probes = re.findall(r"(\w+)Probe:\n +httpGet: \{path: (\S+), port: (\d+)\}", manifest)
    assert probes == [("liveness", "/live", "8080"), ("readiness", "/health", "8080")]
    variables = dict(re.findall(r"\{name: (MILLRACE_\w+), value: \"?([^\"}]+)\"?\}", manifest))
    assert variables["MILLRACE_HEALTH_PORT"] == "8080"
    assert variables["MILLRACE_HEALTH_HOST"] == "0.0.0.0"
    settings = {
        name.removeprefix("MILLRACE_").lower(): value
        for name, value in variables.items()
        if name != "MILLRACE_STATE_DIR"
    }
    assert StreamsConfig.model_validate(settings).health_port == 8_080
