"""Write one range of offsets to one file, or inspect such a file, as a task of Spark.

Tasks run in Spark's workers, which share the directory with the driver.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from streams.errors import StreamsError
from streams.spark.exporting.export_directory import sync_to_disk
from streams.spark.exporting.manifest import ExportedFile, build_file_path
from streams.spark.serdes.columns import BatchDecoder
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import IsolationLevel, SerdeOptions
from streams.spark.source.ranges import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FileName: TypeAlias = str

FILE_COLUMNS = (
    "key BINARY, value BINARY, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""The columns of a file; its topic and partition are in its path."""
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
_CODEC = "zstd"
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FileInspection:
    """Represents the content of a file on disk; a field is None where it can't be read."""

    bytes: int | None = None
    sha256: str | None = None
    records: int | None = None
    first: int | None = None
    last: int | None = None
    wrong: str | None = None


class RangeWriter:
    """Writes ranges of offsets to files in a directory."""

    def __init__(self, access: BrokerAccess, directory: Path) -> None:
        self._access = access
        self._directory = directory

    def __call__(self, offset_range: OffsetRange) -> tuple[FileName, ExportedFile]:
        """Write the records of a range of offsets to a file, and sync the file to disk.

        Returns the file's name in the directory, and what is in it. No other attempt of the task
        has the name: Spark may give one up and take another's. Raises StreamsError where the
        range can't be read, or the file not be written.
        """
        try:
            return self._write_file(offset_range, self._directory / uuid.uuid4().hex)
        except OSError as error:
            raise StreamsError(
                f"{offset_range} can't be written to {self._directory}: {error}"
            ) from error

    def _write_file(self, offset_range: OffsetRange, path: Path) -> tuple[FileName, ExportedFile]:
        """Write the records of a range of offsets to a file of this path, and describe the file."""
        decoder = BatchDecoder(SerdeOptions(headers=True))
        records = 0
        with (
            path.open("wb") as sink,
            parquet.ParquetWriter(sink, _SCHEMA, compression=_CODEC) as writer,
        ):
            for raw in fetch_batches(
                self._access, IsolationLevel.READ_COMMITTED, offset_range, with_headers=True
            ):
                batch = decoder.decode_batch(raw).select(_SCHEMA.names)
                writer.write_batch(batch.cast(_SCHEMA))
                records += len(raw)
        sync_to_disk(path)
        size, sha256 = _compute_size_and_checksum(path)
        file = ExportedFile(
            path=build_file_path(offset_range),
            topic=offset_range.topic,
            partition=offset_range.partition,
            first=offset_range.first,
            until=offset_range.until,
            records=records,
            no_records=offset_range.until - offset_range.first - records,
            bytes=size,
            sha256=sha256,
        )
        return path.name, file


def inspect_file(path: Path) -> FileInspection:
    """Return a file's size, checksum, record count and offsets; all are None if it is missing."""
    try:
        size, sha256 = _compute_size_and_checksum(path)
    except FileNotFoundError:
        return FileInspection()
    except OSError as error:
        return FileInspection(wrong=error.strerror)
    try:
        found = parquet.ParquetFile(path)
        offsets = found.read(columns=["offset"])["offset"]
    except Exception as error:  # A damaged file makes pyarrow raise anything.
        return FileInspection(size, sha256, wrong=str(error).splitlines()[0])
    if not len(offsets):
        return FileInspection(size, sha256, 0)
    ends = compute.min_max(offsets).as_py()
    return FileInspection(size, sha256, len(offsets), ends["min"], ends["max"])


def run_in_spark_tasks(
    spark: SparkSession, run_item: Callable[[T], R], items: Sequence[T]
) -> list[R]:
    """Run `work(item)` in a Spark task for each item; return the results in order."""
    if not items:
        return []
    return spark.sparkContext.parallelize(items, len(items)).map(run_item).collect()


def _compute_size_and_checksum(path: Path) -> tuple[int, str]:
    """Return the size of a file and its SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()
