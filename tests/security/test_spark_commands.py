"""The commands that run Spark take their connection from a file, and check it first."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.spark import session as sessions
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.server import SecuredKafka
from tests.spark.counting import LINES, Counting

pytestmark = pytest.mark.sampled(1, by="test")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAY_IN = "SASL_SSL/SCRAM-SHA-512"
REFUSED_WITHIN_S = 10.0


@pytest.fixture
def counted(secured_kafka: SecuredKafka, unique: Callable[[str], str], tmp_path: Path) -> Counting:
    """Count words over PLAINTEXT."""
    counting = Counting(secured_kafka.listener_servers("PLAINTEXT"), unique("words"), tmp_path)
    counting.feed(*LINES)
    counting.run()
    return counting


def test_refused_credentials_are_one_line_before_spark_starts(
    secured_kafka: SecuredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = dict(describe_access(secured_kafka, WAY_IN).refusals["wrong password"].settings)
    servers = refused.pop("bootstrap.servers")
    file = tmp_path / "connection.json"
    file.write_bytes(orjson.dumps(refused))
    monkeypatch.setattr(sessions, "session", lambda *_, **__: pytest.fail("Spark was started"))
    for command in (
        ["reconcile", "examples.word_count:app"],
        ["export", "word-count", "--to", str(tmp_path / "exports")],
        ["export", "--verify", str(tmp_path / "exports")],
    ):
        began_s = time.monotonic()
        done = invoke(*command, "--bootstrap-servers", servers, "--connection", str(file))
        assert time.monotonic() - began_s < REFUSED_WITHIN_S
        assert done.exit_code == 2, done.output
        (line,) = done.stderr.splitlines()
        assert "SASL_AUTHENTICATION_FAILED" in line


def test_an_application_is_exported_and_reconciled_by_the_connection_of_a_file(
    spark: SparkSession,
    secured_kafka: SecuredKafka,
    counted: Counting,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = dict(describe_access(secured_kafka, WAY_IN).settings)
    servers = settings.pop("bootstrap.servers")
    password = tmp_path / "password"
    password.write_text(settings.pop("sasl.password") + "\n")
    file = tmp_path / "connection.properties"
    settings["sasl.password.file"] = password.name
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    reaching = ("--bootstrap-servers", servers, "--connection", str(file))
    application = counted.app.application_id
    exported = tmp_path / "exports"
    for command in (
        ["export", application, "--topic", counted.out, "--to", str(exported), "--to-now"],
        ["export", "--verify", str(exported)],
        ["reconcile", f"{__name__}:app", "--account", "counts"],
    ):
        monkeypatch.setitem(globals(), "app", counted.app)
        done = invoke(*command, *reaching)
        assert done.exit_code == 0, done.output


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))
