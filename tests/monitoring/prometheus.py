"""Run Prometheus as a child process, and ask it queries."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from ops.generate.rules import render_rules
from tests.processes import (
    HANG_LIMIT_S,
    HOST,
    ServerProcess,
    answers,
    free_ports,
    wait_until,
)

EVALUATION_S = 1
"""The seconds from one scrape to the next, and from one evaluation of the rules to the next."""
_LOOK_EVERY_S = 0.2
"""Prometheus has nothing new sooner, and each question takes time from what it scrapes."""


def find_tool(name: str) -> str:
    """Return the path of a program of Debian's package prometheus; without it the test is skipped.

    In CI, which installs the package, the test fails.
    """
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is missing: apt-get install prometheus"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def run_promtool(*arguments: str | Path, text: str = "") -> None:
    """Run promtool on a text; what it prints is the message of the failure."""
    ran = subprocess.run(
        [find_tool("promtool"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


APPLICATION = {"application": "words", "env": "tests"}
"""The labels that the workers get by the configuration of the scrape."""


def scale_rules(time_scale: float) -> str:
    """Return the rules with durations divided by a scale, and the age of a transaction, too."""
    rules = render_rules(time_scale)
    age = "millrace_log_open_transaction_seconds) > "
    limit_s = 900
    assert f"{age}{limit_s}" in rules, "the limit of the alert on hanging transactions has moved"
    return rules.replace(f"{age}{limit_s}", f"{age}{round(limit_s / time_scale)}")


class Prometheus(ServerProcess):
    """Represents a Prometheus that scrapes each second, with rules whose time is scaled."""

    def __init__(self, targets: Mapping[str, Sequence[str]], time_scale: float) -> None:
        super().__init__("prometheus")
        (self.port,) = free_ports(1)
        (self.directory / "alerts.yml").write_text(scale_rules(time_scale))
        jobs = [
            {
                "job_name": job,
                "static_configs": [
                    {"targets": list(addresses), "labels": APPLICATION}
                    if job == "millrace-worker"
                    else {"targets": list(addresses)}
                ],
            }
            for job, addresses in targets.items()
        ]
        settings = {
            "global": {
                "scrape_interval": f"{EVALUATION_S}s",
                "evaluation_interval": f"{EVALUATION_S}s",
            },
            "rule_files": ["alerts.yml"],
            "scrape_configs": jobs,
        }
        (self.directory / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.spawn(
            [
                find_tool("prometheus"),
                f"--config.file={self.directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.directory / 'data'}",
                f"--web.listen-address={HOST}:{self.port}",
            ]
        )
        self.wait_until_ready(lambda: answers(self.port) and self._is_ready())

    def _is_ready(self) -> bool:
        try:
            return fetch(self.port, "/-/ready")[0] == HTTPStatus.OK
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of a query's result now. Raises AssertionError if it is wrong."""
        _, text = fetch(self.port, f"/api/v1/query?{urlencode({'query': expression})}")
        answer = json.loads(text)
        assert answer["status"] == "success", (expression, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def find_label_values(self, name: str, label: str) -> list[str]:
        """Return the values of a label of a figure, as a variable of a dashboard does."""
        found = {each["metric"].get(label) for each in self.query(name)}
        return sorted(filter(None, found))

    def list_firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        found = self.query('ALERTS{alertstate="firing"}')
        return {each["metric"]["alertname"] for each in found}


def wait_until_seen(condition: Callable[[], bool], *, what: Callable[[], str] | str) -> None:
    """Wait until what Prometheus has found out meets a condition."""
    wait_until(condition, what=what, look_every_s=_LOOK_EVERY_S)


def fetch(port: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer on a port of this machine."""
    connection = http.client.HTTPConnection(HOST, port, timeout=HANG_LIMIT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
