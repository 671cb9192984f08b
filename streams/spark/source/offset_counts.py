"""Count the offsets of a split that hold a record, and those that don't, by reading them all.

Markers, aborted records and what compaction removed are no records. Together with the records they
must make up the split, which proves that a read was complete.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from streams.errors import StreamsError
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import IsolationLevel
from streams.spark.source.ranges import OffsetRange

_COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("until", pa.int64()),
        ("records", pa.int64()),
        ("no_records", pa.int64()),
    ]
)
SCHEMA = from_arrow_schema(_COLUMNS)
"""The columns of the counts (`content=coverage`), as Spark has them."""


def count_offsets_as_batch(
    access: BrokerAccess, isolation: IsolationLevel, offset_range: OffsetRange
) -> Any:
    """Read a range and return, as a one-row RecordBatch, how many offsets hold a record.

    The columns are those of SCHEMA; `no_records` counts the offsets that hold none. Raises
    StreamsError where the range can't be read, or an offset came twice or out of order.
    """
    records, no_records, after = 0, 0, offset_range.first
    for batch in fetch_batches(access, isolation, offset_range):
        for offset in batch.offsets:
            if offset < after:
                raise StreamsError(f"{offset_range}: offset {offset} came after {after - 1}")
            no_records += offset - after
            after = offset + 1
        records += len(batch)
    no_records += offset_range.until - after
    row = asdict(offset_range) | {"records": records, "no_records": no_records}
    return pa.RecordBatch.from_pylist([row], schema=_COLUMNS)
