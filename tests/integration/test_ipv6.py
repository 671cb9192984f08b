"""Test an application, commands and Spark's client on a broker with an IPv6 address."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from coordinator.embedded import EmbeddedBroker
from streams import App, serdes
from streams.commands.root import cli
from streams.spark.source.broker_access import create_access
from tests.brokers import IN_CI
from tests.processes import free_ports, wait_until


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as opened:
            opened.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = [IN_CI, pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")]


def run(servers: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--bootstrap-servers", servers])


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_everything_reaches_a_broker_by_its_address_in_brackets(tmp_path: Path, host: str) -> None:
    (health_port,) = free_ports(1)
    with EmbeddedBroker(topics={"in": 1, "out": 1}, host=host) as broker:
        servers = broker.bootstrap_servers
        assert servers.startswith("[::1]:")
        app = App(
            "v6",
            bootstrap_servers=servers,
            state_dir=tmp_path,
            health_host=host,
            health_port=health_port,
        )
        app.stream("in", key=serdes.string, value=serdes.string).to("out")
        assert run(servers, "produce", "in", "a").exit_code == 0
        with app.start() as running:
            running.wait_for("RUNNING")
            wait_until(
                lambda: run(servers, "consume", "out", "--until-end").stdout == "null\ta\n",
                what="the record in the output",
            )
            assert run(servers, "group", "describe", "v6").exit_code == 0
            with urllib.request.urlopen(f"http://[::1]:{health_port}/health") as answer:
                assert answer.status == 200
        access = create_access(servers, {})
        access.check_connection()
        assert access.create_admin().fetch_partition_counts()["out"] == 1
        bare = servers.replace("[", "").replace("]", "")
        assert f"without brackets: write it as {servers}" in run(bare, "topics", "list").stderr
