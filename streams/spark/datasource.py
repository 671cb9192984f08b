"""The data source `millrace`: what Spark asks, handed to those who answer."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from streams.spark.batch_reader import BatchReader
from streams.spark.columns import columns_of, planned
from streams.spark.options import STREAM_READ, read_options
from streams.spark.stream_reader import StreamReader, stream_read_options


class MillraceDataSource(DataSource):
    """`spark.dataSource.register(MillraceDataSource)`; then `spark.read.format("millrace")`.

    Options are those of docs/spark.md. Raises ConfigError for one that can't be.
    """

    @classmethod
    def name(cls) -> str:
        return "millrace"

    def schema(self) -> StructType:
        options = read_options(self.options, also=STREAM_READ)
        topic = options.topic or ""
        return columns_of(planned(options.serdes, topic), topic).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(stream_read_options(self.options))
