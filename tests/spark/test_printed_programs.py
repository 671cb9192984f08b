"""Test that the programs of docs/spark.md run as they are printed, one after the other.

Only the address of the broker is another, and the directory of a checkpoint, which is relative to
the JVM's. They begin with nothing but an application that has run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from examples.word_count import app
from streams.spark import read_cut
from streams.spark.application_access import resolve_access
from streams.spark.exporting.export import ExportRequest, export_application
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
LINES = ["to be or not to be", "be"]
COUNTS = {"to": 2, "be": 3, "or": 1, "not": 1}
PRINTED_SERVER, PRINTED_CHECKPOINTS = "127.0.0.1:9092", "checkpoints"


def programs(page: str) -> list[str]:
    """Return the Python programs that a page prints, in their order."""
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def count_words(servers: str, state: Path) -> None:
    """Create the topics, and let the example count the lines."""
    with Client(servers) as client:
        for topic in ("lines", "counts-by-word", "totals", "copied-lines"):
            create_topic(client, topic, partitions=1)
    producer = Producer({"bootstrap.servers": servers})
    for line in LINES:
        producer.produce("lines", line)
    assert producer.flush(HANG_LIMIT_S) == 0
    app.configure(None, bootstrap_servers=servers, state_dir=state)
    with app.start() as running:
        running.wait_for("RUNNING")
        counts = running.store("counts")
        wait_until(lambda: counts.get("be") == COUNTS["be"], what="all lines to be counted")


def test_the_programs_of_the_page_run_as_printed(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = broker.bootstrap_servers
    monkeypatch.setattr(app, "config", app.config)  # so that it is as before afterwards
    count_words(servers, tmp_path / "state")
    monkeypatch.chdir(tmp_path)
    page = programs("spark.md")
    names: dict[str, Any] = {"__name__": "printed"}
    assert "spark.dataSource.register(MillraceDataSource)" in page[0]
    for program in page:
        if "exported(" in program:  # what `millrace export` above it has written
            access = resolve_access(app.config)
            request = ExportRequest(outputs=["counts-by-word"])
            export_application(spark, read_cut(app), access, Path("exports"), request)
        here = program.replace(PRINTED_SERVER, servers)
        exec(here.replace(PRINTED_CHECKPOINTS, str(tmp_path / PRINTED_CHECKPOINTS)), names)
    assert {row.key: row.value for row in names["counts"].collect()} == COUNTS
    assert names["balanced"]
    assert Path("report.html").exists()
    assert Path("cut.json").exists()
    assert names["rows"].count() > 0
    copied = spark.read.format("millrace").options(
        bootstrap_servers=servers, topic="copied-lines", value="string"
    )
    assert sorted(r.value for r in copied.load().collect()) == sorted(LINES)


def test_the_programs_of_the_page_on_security_need_nothing_before_them(
    spark: SparkSession,
) -> None:
    [read, redaction] = [each for each in programs("security.md") if "spark." in each]
    names: dict[str, Any] = {"__name__": "printed"}
    reading = read.replace("rows = reader.load()", "")  # there is no such cluster
    assert reading != read
    exec(reading, names)
    before = spark.conf.get("spark.sql.redaction.options.regex")
    exec(redaction, names)
    assert spark.conf.get("spark.sql.redaction.options.regex") != before
