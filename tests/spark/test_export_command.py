"""Test `millrace export`: an application that has run, its directory, and messages of mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from streams import App, serdes
from streams.commands.root import cli
from streams.spark.exporting.export import exported
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="test")

LINES = 30


def millrace(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


def app(name: str, servers: str, state: Path) -> App:
    made = App(name, bootstrap_servers=servers, state_dir=state, commit_interval_ms=20)
    lines = made.stream(f"{name}-lines", key=serdes.string, value=serdes.string)
    lines.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return made


@pytest.fixture
def ran(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> tuple[str, App]:
    """Return the application, stopped after counting some lines, and its module `counted`."""
    name = unique("counted")
    servers = broker.bootstrap_servers
    with Client(servers) as client:
        for topic in ("lines", "out"):
            create_topic(client, f"{name}-{topic}", partitions=2)
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for number in range(LINES):
        producer.produce(f"{name}-lines", b"line", b"key %d" % (number % 3))
    assert producer.flush(HANG_LIMIT_S) == 0
    made = app(name, servers, tmp_path / "state")
    with made.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        wait_until(
            lambda: sum(running.store("counts").get(f"key {n}") or 0 for n in range(3)) == LINES,
            what="not all lines are counted",
        )
    return name, made


def test_an_application_is_exported_and_its_directory_holds(
    spark: SparkSession,
    ran: tuple[str, App],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, made = ran
    servers = made.config.bootstrap_servers
    (tmp_path / "counted_app.py").write_text(
        f"from pathlib import Path\nfrom tests.spark.test_export_command import app as make\n"
        f"app = make({name!r}, {servers!r}, Path({str(tmp_path / 'state')!r}))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    to = tmp_path / "exports"
    done = millrace("--app", "counted_app:app", "--to", to, "--inputs")
    assert done.exit_code == 0, done.output
    assert f"{name}-lines (input): {LINES} records" in done.output
    assert f"{name}-counts-changelog (changelog): " in done.output
    assert f"{name}-out (output): " in done.output
    counts: dict[bytes, int] = {}
    for row in exported(spark, to, topic=f"{name}-out").orderBy("partition", "offset").collect():
        counts[bytes(row["key"])] = int.from_bytes(row["value"], "big")
    assert counts == {b"key %d" % n: LINES // 3 for n in range(3)}
    records = exported(spark, to).count()
    done = millrace(name, "--to", to, "--bootstrap-servers", servers)
    assert done.exit_code == 0, done.output
    assert "export=00000002: 0 records" in done.output
    done = millrace("--verify", to, "--bootstrap-servers", servers)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("2 exports, ")
    assert f" files, {records} records: as the manifests and the topics have them" in done.output
    next(to.rglob("*.parquet")).unlink()
    done = millrace("--verify", to, "--no-topics")
    assert done.exit_code == 1
    assert done.output.count("wrong: ") == 1
    assert "1 findings beside the manifests" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "export needs --to DIR to write to, or --verify DIR to check"),
        (("--to", "d"), "export needs an application id, or --app module:app"),
        (("a", "--to", "d", "--inputs"), "--inputs needs --app module:app"),
        (("a", "--to", "d", "--app", "nowhere:app"), "no module 'nowhere'"),
        (("--verify", "nowhere", "--no-topics"), "no export in nowhere"),
        (
            ("a", "--to", "d", "--bootstrap-servers", "127.0.0.1:1"),
            "no Kafka broker answers at bootstrap_servers='127.0.0.1:1'",
        ),
        (("a", "--to", "d", "--spark", "x", "--bootstrap-servers", "h:1"), "--spark 'x' is not"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    spark: SparkSession,
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = millrace(*arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert done.stderr.startswith("millrace: ")
    assert done.stderr.count("\n") == 1
