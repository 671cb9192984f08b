"""Test that a topic read with Spark's own Kafka connector has the same rows, on either broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from tests.brokers import Broker, in_ci
from tests.spark.connector import sessions
from tests.spark.connector.sessions import CONNECTOR, Session
from tests.spark.reading import load, rows
from tests.spark.topics import Record, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    reason = sessions.missing()
    if reason:
        if in_ci():
            pytest.fail(f"{reason} (in CI this is a failure)")
        pytest.skip(reason)
    with Session(tmp_path_factory.mktemp("connector"), connector=True) as session:
        yield session


def place(record: Record) -> tuple[int, int]:
    return record.partition, record.offset


def rows_in(directory: Path) -> list[Record]:
    table = ds.dataset(directory, format="parquet").to_table()
    columns = [table[name].to_pylist() for name in ("partition", "offset", "key", "value")]
    return sorted(map(Record._make, zip(*columns, strict=True)), key=place)


def test_both_read_the_same_rows(
    spark: SparkSession,
    broker: Broker,
    connector: Session,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Compare reads with aborted transactions and markers between the records and at both ends."""
    written = mixed(broker.bootstrap_servers, unique("beside"), partitions=3, records=500)
    answer = connector.ask(
        CONNECTOR, broker.bootstrap_servers, written.topic, into=str(tmp_path / "rows")
    )
    assert answer["pyspark"] == sessions.PYSPARK
    theirs = rows_in(tmp_path / "rows")
    ours = rows(load(spark, broker, written.topic, records_per_split=1_000))
    assert sorted(ours, key=place) == theirs
    assert set(theirs) == written.rows()
    assert len(theirs) == 1_500
