"""Test that `millrace doctor` has nothing to warn of where all is well, and names a lost node."""

from __future__ import annotations

import json
import re
from typing import Any

from typer.testing import CliRunner

from streams.commands.root import cli
from tests.cluster.application import ClusterApplication
from tests.processes import wait_until


def ask_doctor(application: ClusterApplication, *arguments: str) -> list[dict[str, Any]]:
    servers = application.cluster.bootstrap_servers
    words = ["doctor", *arguments, "--bootstrap-servers", servers, "--json"]
    found: list[dict[str, Any]] = json.loads(CliRunner().invoke(cli, words).stdout)["findings"]
    return found


def list_complaints(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["verdict"] in ("warning", "error")]


def has_standby_tasks(application: ClusterApplication) -> bool:
    """Return whether the doctor counts standby tasks in a stable group."""
    found = ask_doctor(application, application.name)
    return any(re.search(r"active and [1-9]\d* standby tasks", each["what"]) for each in found)


def test_an_application_with_standby_tasks_on_three_nodes_has_no_warning(
    application: ClusterApplication,
) -> None:
    with application.records_flow():
        wait_until(lambda: has_standby_tasks(application), what="standby tasks")
        assert list_complaints(ask_doctor(application, application.name)) == []
        assert list_complaints(ask_doctor(application)) == []
    application.finish()


def test_a_node_that_is_away_is_named(application: ClusterApplication) -> None:
    node = next(iter(application.cluster.nodes.values()))
    node.kill()
    wait_until(
        lambda: (
            "replicas in sync" in {e["point"] for e in list_complaints(ask_doctor(application))}
        ),
        what="replicas to be behind",
    )
    found = {e["point"]: e for e in list_complaints(ask_doctor(application, application.name))}
    assert found["replicas in sync"]["verdict"] == "warning"
