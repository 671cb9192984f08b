"""Provide one Spark session for all tests here, and choose which of them run on real Kafka.

A JVM takes seconds to start, so there is one for both brokers. Only tests of what asks a broker for
something of its own run on both; a sample has each of these on one broker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sampling import choose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ON_KAFKA = {
    "test_read",
    "test_read_gone",
    "test_beside_the_connector",
    "test_stores",
    "test_stream_reader",
    "test_writing",
    "test_cuts_taken",
    "test_reconcile",
}
"""What asks a broker for something of its own; the rest is the same on any."""
BROKERS = ("embedded", "kafka")
# Most queries of tests run once: the optimising compiler costs more than it gains. Commands that
# tests run inherit this.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    # Without the optimising compiler Java's code cache is small by default, and hundreds of queries
    # fill it: the JVM ends then.
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+UseSerialGC' pyspark-shell",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave of the tests of this directory those that are to run on each broker."""
    dropped = [item for item in items if not _is_wanted(item)]
    if dropped:
        items[:] = [item for item in items if _is_wanted(item)]
        config.hook.pytest_deselected(items=dropped)


def _is_wanted(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    broker = None if callspec is None else callspec.params.get("broker")
    if item.path.parent != Path(__file__).parent or broker not in BROKERS:
        return True
    if item.path.stem not in ON_KAFKA:
        return bool(broker == "embedded")
    chosen = choose(item.nodeid.replace(f"[{broker}", "["), BROKERS)
    return chosen is None or broker in chosen


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a local session of two cores that knows the format `millrace`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from streams.spark import MillraceDataSource

    session = (
        SparkSession.builder.master("local[2]")
        .appName("millrace tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        # As for the commands: of queries of few records each stage need not be planned anew.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.python.daemon.module", "streams.spark.python_daemon")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.dataSource.register(MillraceDataSource)
    yield session
    session.stop()
