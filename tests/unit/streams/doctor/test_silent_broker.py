"""Test that the doctor waits once, and not for long, for a broker that does not answer."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

from typer.testing import CliRunner

from streams.commands.root import cli


def test_a_broker_that_is_stopped_is_one_finding_and_waited_for_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        options = ["--bootstrap-servers", servers, "--state-dir", str(tmp_path)]
        began_s = time.monotonic()
        result = CliRunner().invoke(cli, ["doctor", "words", "--json", *options])
        took_s = time.monotonic() - began_s
        plain = CliRunner().invoke(cli, ["doctor", "words", *options])
    assert result.exit_code == 2, result.output
    found = json.loads(result.stdout)["findings"]
    (wrong,) = [each for each in found if each["verdict"] in ("error", "warning")]
    assert wrong["point"] == "connection"
    assert plain.stdout.count("no Kafka broker answers") == 1
    assert plain.stdout.count("for the error above") == 1
    assert took_s < 15, "it waits 8 s, and takes 20 s where it waits as commands do"
