"""Implement Spark's data source `millrace` by handing each request to its reader or writer."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from streams.errors import ConfigError
from streams.spark.sink.stream_writer import StreamWriter
from streams.spark.sink.writing import BatchWriter, check, write_options
from streams.spark.source.batch_reader import reader_of, schema_of
from streams.spark.source.options import STREAM_READ, read_options
from streams.spark.source.stream_reader import StreamReader, stream_read_options
from streams.spark.stores.store_reader import StoreReader, schema_of_store


class MillraceDataSource(DataSource):
    """Reads and writes topics, and reads stores, as Spark's format `millrace`.

    After `spark.dataSource.register(MillraceDataSource)` use `spark.read.format("millrace")`.
    Options are those of docs/spark.md. Raises ConfigError for one that can't be.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "millrace"

    def schema(self) -> StructType:
        """Return the columns of a read, of a topic or of a store as the options say."""
        options = read_options(self.options, also=STREAM_READ)
        return schema_of(options) if options.store is None else schema_of_store(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read."""
        options = read_options(self.options)
        if options.store is not None:
            _check(schema, schema_of_store(options))
            return StoreReader(options)
        _check(schema, schema_of(options))
        return reader_of(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming read."""
        _check(schema, self.schema())
        return StreamReader(stream_read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch write.

        Raises ConfigError for columns that can't be written.
        """
        options = write_options(self.options, stream=False)
        check(options, schema, overwrite=overwrite)
        return BatchWriter(options)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of a streaming write.

        Raises ConfigError for columns that can't be written.
        """
        options = write_options(self.options, stream=True)
        check(options, schema, overwrite=overwrite)
        return StreamWriter(options)


def _check(given: StructType, ours: StructType) -> None:
    """Raise ConfigError if the schema that Spark passes on is another than that of the options.

    That is the case where a user has called `.schema()` on the read.
    """
    if given != ours:
        raise ConfigError(
            f"the columns are {ours.simpleString()}, and .schema() gives {given.simpleString()}: "
            "leave it out; key_schema and value_schema say what keys and values are"
        )
