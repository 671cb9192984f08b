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
from streams.spark.sink.writing import BatchWriter, StreamWriter, check_columns
from streams.spark.source.batch_reader import BatchReader, create_topic_reader
from streams.spark.source.options import (
    ReadOptions,
    parse_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from streams.spark.source.stream_reader import StreamReader
from streams.spark.stores.store_reader import StoreReader


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
        """Return the columns of a read, which is of a topic or of a store as the options say."""
        return create_reader(parse_read_options(self.options, allows_streaming=True)).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read."""
        reader = create_reader(parse_read_options(self.options))
        _check_user_schema(schema, reader.schema)
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming read."""
        _check_user_schema(schema, self.schema())
        return StreamReader(parse_stream_read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch write.

        Raises ConfigError for columns that can't be written.
        """
        options = parse_write_options(self.options, is_stream=False)
        check_columns(options, schema, overwrite=overwrite)
        return BatchWriter(options)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of a streaming write.

        Raises ConfigError for columns that can't be written.
        """
        options = parse_write_options(self.options, is_stream=True)
        check_columns(options, schema, overwrite=overwrite)
        return StreamWriter(options)


def create_reader(options: ReadOptions) -> BatchReader | StoreReader:
    """Create the reader of a topic or of a store."""
    return create_topic_reader(options) if options.store is None else StoreReader(options)


def _check_user_schema(user_schema: StructType, expected_schema: StructType) -> None:
    """Raise ConfigError if the schema that Spark passes differs from that of the read's options.

    That is the case where a user has called `.schema()` on the read.
    """
    if user_schema != expected_schema:
        raise ConfigError(
            f"the columns are {expected_schema.simpleString()}, and .schema() gives "
            f"{user_schema.simpleString()}: "
            "leave it out; key_schema and value_schema say what keys and values are"
        )
