"""Test that the doctor waits once, and not for long, for a broker that does not answer."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from typer.testing import CliRunner

from streams.commands.root import cli
from streams.doctor import application_points, cluster_points
from tests.processes import HANG_LIMIT_S

PROGRAM = """
import signal
from confluent_kafka.admin import AdminClient
from streams.doctor.points import Point, look_at_points
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
admin = AdminClient({{"bootstrap.servers": "{servers}", "log_level": 0}})
list(look_at_points([Point("topics", lambda: admin.list_topics(timeout={wait_s}))]))
"""


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


def test_at_the_end_of_its_time_every_point_that_is_left_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        options = ["--bootstrap-servers", servers, "--state-dir", str(tmp_path), "--timeout", "0.5"]
        result = CliRunner().invoke(cli, ["doctor", "words", "--json", *options])
    found = json.loads(result.stdout)["findings"]
    points = {name for name, _ in cluster_points.list_cluster_points(is_alone=False)}
    points |= {name for name, _ in application_points.list_application_points()}
    (warning, *left) = found
    assert {each["point"] for each in left} == points
    assert {(each["verdict"], each["what"]) for each in left} == {
        ("not looked at", "the time of --timeout is over")
    }
    assert (warning["verdict"], warning["point"]) == ("warning", "time")
    assert warning["what"].endswith(f"with {len(left)} points left")
    assert result.exit_code == 1


def test_ctrl_c_does_not_wait_for_a_call_of_librdkafka() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        program = PROGRAM.format(servers=servers, wait_s=2 * HANG_LIMIT_S)
        with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
            try:
                with silent.accept()[0]:
                    process.send_signal(signal.SIGINT)
                    _, errors = process.communicate(timeout=HANG_LIMIT_S)
            finally:
                process.kill()
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
