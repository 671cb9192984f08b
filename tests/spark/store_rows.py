"""Read rows of stores as the data source hands them to Spark."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema

from streams import serdes
from streams.spark import MillraceDataSource

START_MS = time.time_ns() // 1_000_000_000 * 1000 - 120_000
"""Not long ago: a changelog of records that were old when they were written is soon compacted, and
what they are about deleted, for brokers go by the times of records."""
TEXT: Any = {"key": serdes.string, "value": serdes.string}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def load_with(options: Mapping[str, str]) -> list[dict[str, Any]]:
    """Load rows without a JVM: what Spark pickles is pickled, and its check of schemas is made."""
    source = MillraceDataSource(dict(options))
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source.reader(schema)))
    rows: list[dict[str, Any]] = []
    for part in pickle.loads(pickle.dumps(reader.partitions())):
        for batch in reader.read(part):
            assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
            rows += batch.to_pylist()
    return rows


def millis(found: datetime | None) -> int | None:
    """Return milliseconds of a time that Spark hands out in the session's zone, which is UTC."""
    return (
        None if found is None else (found.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
    )


def table(rows: list[dict[str, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for row in rows:
        key = row["key"]
        if "window_start" in row:
            key = (key, millis(row["window_start"]), millis(row["window_end"]))
        assert key not in found, row
        assert row.get("_corrupt_record") is None, row
        found[key] = row["value"]
    return found
