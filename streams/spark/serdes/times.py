"""Convert times between ms since 1970, as Kafka has them, and the columns that Spark has for them.

A TIMESTAMP counts microseconds in 64 bits, and a record's time milliseconds: so there are times of
records that no TIMESTAMP can be. They are refused where they are read, with the record's offset,
and kept where times are read as numbers (option `times=ms`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types

from streams.errors import ConfigError, UserError
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import TimeFormat

SPARK_MS_MAX = (2**63 - 1) // 1000
"""The last ms that a TIMESTAMP has, in the year 294 247; the first is -SPARK_MS_MAX."""
NO_TIME_MS = -1
"""The time of a record that has none."""
_MS = pa.timestamp("ms", tz="UTC")
_US = pa.timestamp("us", tz="UTC")
# Scalars with a type: for Python's own numbers pyarrow looks for dateutil on the path each time.
_MIN = pa.scalar(-SPARK_MS_MAX, pa.int64())
_MAX = pa.scalar(SPARK_MS_MAX, pa.int64())
_NULL = pa.scalar(None, pa.int64())
_US_OF_MS = pa.scalar(1000, pa.int64())
_FIRST_WRITTEN, _NONE = pa.scalar(1, pa.int64()), pa.scalar(NO_TIME_MS, pa.int64())


def find_time_column_type(times: TimeFormat) -> types.DataType:
    """Return Spark's type of the columns that have times."""
    return types.LongType() if times is TimeFormat.MS else types.TimestampType()


def mark_times_beyond_spark(times_ms: Any) -> Any:
    """Return an Arrow array that is true for the times that no TIMESTAMP can be."""
    return pc.or_(pc.less(times_ms, _MIN), pc.greater(times_ms, _MAX))


def to_time_column(times_ms: Any, times: TimeFormat) -> Any:
    """Convert an int64 array of times in ms to a column; what no TIMESTAMP can be is null."""
    if times is TimeFormat.MS:
        return times_ms
    said = pc.if_else(mark_times_beyond_spark(times_ms), _NULL, times_ms)
    return said.cast(_MS).cast(_US)


def to_record_times(column_name: str, times_ms: Any, raw: RawBatch, times: TimeFormat) -> Any:
    """Convert times of the records of a batch to the column `column_name`.

    Raises UserError, with topic, partition and offset, for a time that no TIMESTAMP can be.
    """
    if (
        times is TimeFormat.TIMESTAMP
        and pc.any(beyond := mark_times_beyond_spark(times_ms)).as_py()
    ):
        row = beyond.to_pylist().index(True)
        raise UserError(
            f"{column_name} of {raw.topic}[{raw.partition}] offset {raw.offsets[row]} is "
            f"{times_ms[row]} ms since 1970, and a TIMESTAMP of Spark ends at {SPARK_MS_MAX} ms, "
            "in the year 294 247. Read it with option times=ms, which gives times as numbers, or "
            "leave it out with timestamps_to or by its offset"
        )
    return to_time_column(times_ms, times)


def to_kafka_times(column: Any) -> list[int | None]:
    """Convert the column `timestamp` of rows that are written to ms since 1970.

    A TIMESTAMP's microseconds are cut off; a BIGINT is ms. -1 is a record without a time, and null
    the time at which the row is written.

    Raises ConfigError for another type, UserError for a time that can't be written.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
        quotient = pc.divide(micros, _US_OF_MS)  # towards 0
        is_cut = pc.less(micros, pc.multiply(quotient, _US_OF_MS))
        found = pc.subtract(quotient, is_cut.cast(pa.int64()))
    elif pa.types.is_integer(kind):
        found = column.cast(pa.int64())
    else:
        raise ConfigError(
            f"column timestamp is {kind}: it must be a timestamp, or a number of ms since 1970"
        )
    wrong = pc.and_(pc.less(found, _FIRST_WRITTEN), pc.not_equal(found, _NONE))
    if pc.any(wrong).as_py():
        least = found[wrong.to_pylist().index(True)]
        raise UserError(
            f"column timestamp has {least} ms since 1970: Kafka's clients write from 1 on, and "
            f"{NO_TIME_MS} for a record without a time. Null is the time of the write"
        )
    return found.to_pylist()  # type: ignore[no-any-return]
